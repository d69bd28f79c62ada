"""The citation of a figure, a table or a verdict: ``fedsampling cite``."""

from collections.abc import Iterator

from fedsampling.base.errors import InputError, check_known
from fedsampling.report import citation, content
from fedsampling.report.formats import exhibit_name
from fedsampling.workflow.project import Project


def cite(paper: str, name: str, project: Project) -> Iterator[str]:
    """Cite an artefact or a claim of a paper in one line, then as BibTeX."""
    spec, folder = project.plan.paper(paper), project.folder
    check_known([name], [*spec.artefacts, *spec.claims], "artefact or claim: '{}' is unknown")
    file = project.papers.resolve().parent / "CITATION.cff"
    software = citation.read(file, project.config.report.address)
    (chapter,) = content.load(folder, {paper: spec})
    exhibits = {exhibit.artefact: exhibit for exhibit in chapter.exhibits}
    claims = {claim.id: claim for claim in chapter.claims}
    if name in exhibits:
        cited = citation.of_exhibit(software, spec, exhibits[name], exhibit_name(exhibits[name]))
    elif name in claims:
        origin = chapter.provenance(claims[name].artefact)
        cited = citation.of_claim(software, spec, claims[name], origin)
    else:
        raise InputError(f"{name}: not drawn yet; run 'fedsampling draw {paper}' first")
    yield cited.line
    yield ""
    yield cited.bibtex.rstrip()
