"""An early ranking: the first worlds of the cheapest datasets, before all are finished."""

from collections.abc import Iterator

from fedsampling.base.text import plural
from fedsampling.evidence.summaries import load_summaries
from fedsampling.experiments.cross_matrix import BENCH, CROSS_MATRIX
from fedsampling.experiments.papers import draw_function
from fedsampling.experiments.shorthand import TUNING
from fedsampling.workflow.comparing.results import ranking
from fedsampling.workflow.comparing.schedule import EARLY_WORLDS
from fedsampling.workflow.comparing.selection import Competition, Overrides
from fedsampling.workflow.summarise import summarise

FOLDER = "early"


def early_lines(comparison: Competition, overrides: Overrides, run: str) -> Iterator[str]:
    """Rank the entries in the first worlds of the datasets that `overrides` keep."""
    changed = dict(overrides)
    kept = [name for name, changes in overrides.items() if changes]
    datasets = [name for name in kept if not name.startswith(TUNING)]
    for name in datasets:
        seeds = comparison.settings[name]["seeds"]
        changed[name] = {**overrides[name], "seeds": seeds[:EARLY_WORLDS]}
    project = comparison.matrix.with_config(overrides={CROSS_MATRIX: changed}).in_subfolder(run)
    for name in kept:
        summarise(CROSS_MATRIX, name, project, folder=project.folder / FOLDER)
    spec = project.plan.paper(CROSS_MATRIX)
    loaded = load_summaries(CROSS_MATRIX, kept, project.folder / FOLDER)
    ranks = draw_function(spec, f"{BENCH}ranks")(loaded, spec).data
    yield (
        f"Early ranking on {plural(len(datasets), 'dataset')} ({', '.join(datasets)}), "
        f"{EARLY_WORLDS} worlds each; it may change:"
    )
    for label in comparison.entries:
        yield f"{label}:"
        yield from ranking(ranks, label)
