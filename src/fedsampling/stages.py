"""The stations after the runs, each from files to files: what the verbs of the command line do."""

import json
from pathlib import Path
from typing import Any

from fedsampling import config as configuration
from fedsampling.artefacts import kit
from fedsampling.artefacts.registry import functions
from fedsampling.config import PRIVATE, Config
from fedsampling.datasets import fetch
from fedsampling.errors import InputError, nearest
from fedsampling.evidence import summaries, verdicts
from fedsampling.files import sha256, write_json
from fedsampling.papers import load_paper
from fedsampling.runs import stores
from fedsampling.specs import scale_of
from fedsampling.workflow import Plan
from fedsampling.workflow import plan as make_plan


def read_config(path: Path) -> Config:
    """Read the configuration."""
    return configuration.load(path)


def read_plan(config: Path, papers: Path) -> Plan:
    """Read the configuration and the papers that it names."""
    return make_plan(read_config(config).model_dump(mode="json"), papers)


def fetch_dataset(dataset: str, config: Path, results: Path) -> list[str]:
    """Bring one edition of a dataset's official files into the cache and note their hashes.

    Returns
    -------
    list of str
        One line per file.

    Raises
    ------
    InputError
        If the dataset is not known, or a file cannot be had or is not the published one.
    """
    cache, mirror = results / "data", read_config(config).mirror
    paths = fetch.fetch_dataset(dataset, cache, mirror)
    hashes = {path.name: sha256(path) for path in paths.values()}
    write_json(cache / f"{dataset}.json", hashes)
    return [f"{name} sha256 {value}" for name, value in hashes.items()]


def summarise_experiment(
    paper: str, experiment: str, config: Path, results: Path, papers: Path
) -> Path:
    """Gather an experiment's runs into ``summaries/<paper>/<experiment>.parquet``."""
    plan = read_plan(config, papers)
    if f"{paper}/{experiment}" not in plan.experiments:
        known = nearest(f"{paper}/{experiment}", plan.experiments)
        raise InputError(f"experiment: '{paper}/{experiment}' is not asked for; {known}")
    manifests = [results / "runs" / f"{name}.json" for name in plan.jobs_of(paper, experiment)]
    missing = [path for path in manifests if not path.is_file()]
    if missing:
        others = f", as are {len(missing) - 1} others" if len(missing) > 1 else ""
        raise InputError(
            f"{missing[0]}: not made yet{others}; run 'fedsampling run' or snakemake first"
        )
    own, shared = stores(results, plan.config)
    out = results / "summaries" / paper / f"{experiment}.parquet"
    settings = plan.experiments[f"{paper}/{experiment}"]
    facts = {**_facts(plan.config), "scale": scale_of(plan.papers[paper], experiment, plan.config)}
    summaries.write(manifests, [own, *shared], settings, facts, out)
    return out


def render_artefact(paper: str, artefact: str, config: Path, results: Path, papers: Path) -> Path:
    """Draw an artefact into ``artefacts/<paper>/<artefact>/``."""
    spec, drawn = load_paper(paper, papers), functions(paper, "artefacts")
    if artefact not in spec.artefacts or artefact not in drawn:
        raise InputError(f"artefact: '{artefact}' is not known; {nearest(artefact, drawn)}")
    folder = results / "artefacts" / paper / artefact
    found = _summaries(paper, spec.artefacts[artefact].experiments, results)
    made = drawn[artefact](found, spec)
    kit.save(made, spec, artefact, folder, found, _facts(read_config(config)))
    return folder / "artefact.json"


def judge_claims(paper: str, config: Path, results: Path, papers: Path) -> Path:
    """Judge a paper's claims into ``claims/<paper>.json``."""
    asked = read_plan(config, papers).papers
    if paper not in asked:
        raise InputError(f"papers: '{paper}' is not known; {nearest(paper, asked)}")
    spec, judges = asked[paper], functions(paper, "claims")
    facts = _facts(read_config(config))
    found = _summaries(paper, list(spec.experiments), results)
    claims = []
    for name, claim in spec.claims.items():
        behind = spec.artefacts[claim.artefact].experiments
        obstacles = kit.badges({key: found[key] for key in behind}, facts)
        if facts["scale"] == "quick" and not behind:
            obstacles = ["quick scale"]  # of what a claim computes itself
        finding = verdicts.judge(judges[name](found, claim), obstacles)
        claims.append(
            {
                "id": name,
                "statement": claim.statement,
                "artefact": claim.artefact,
                "reported": claim.reported,
                "ours": finding.ours,
                "margin": f"{claim.margin:g} {claim.unit}",
                "verdict": finding.verdict,
                "reason": finding.reason,
                "rule": claim.rule,
            }
        )
    out = results / "claims" / f"{paper}.json"
    write_json(out, {"paper": paper, "claims": claims})
    return out


def build_report(config: Path, results: Path, papers: Path) -> Path:
    """Build the site and its crate in ``report/``."""
    from fedsampling.report import site

    plan = read_plan(config, papers)
    context: dict[str, Any] = {
        "project": papers.resolve().parent,
        # What an earlier configuration left in the folder is not part of this report.
        "artefacts": {key: list(paper.artefacts) for key, paper in plan.papers.items()},
        "cards": list(plan.cards),
        # Folders of this machine are nobody else's business.
        "config": plan.config.model_dump(mode="json", exclude=set(PRIVATE)),
        "commands": {
            "Reproduce everything": "make reproduce",
            "At paper scale, from the official data": "snakemake --cores all "
            "--config scale=paper data=official",
        },
    }
    site.build(results / "artefacts", results / "claims", papers, results / "report", context)
    return results / "report" / "index.html"


def print_verdicts(config: Path, results: Path, papers: Path) -> None:
    """Print a table of artefacts and verdicts, and where the report is."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if Console().is_terminal else 110)
    for key, paper in read_plan(config, papers).papers.items():
        artefacts = Table("artefact", "title", "face", title=key, title_justify="left")
        for name in paper.artefacts:
            made = _json(results / "artefacts" / key / name / "artefact.json")
            artefacts.add_row(name, made["title"], ", ".join(made["badges"]) or "–")
        claims = Table("claim", "verdict", "ours", "paper")
        for claim in _json(results / "claims" / f"{key}.json")["claims"]:
            claims.add_row(claim["id"], claim["verdict"], claim["ours"], claim["reported"])
        console.print(artefacts)
        if paper.claims:
            console.print(claims)
    console.print(f"Report: {results / 'report' / 'index.html'}", soft_wrap=True)


def _facts(config: Config) -> dict[str, str]:
    return {"scale": config.scale, "data": config.data}


def _summaries(paper: str, experiments: list[str], results: Path) -> dict[str, summaries.Summary]:
    folder = results / "summaries" / paper
    return {name: summaries.load(folder / f"{name}.parquet") for name in experiments}


def _json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path}: missing or damaged; run snakemake again") from None
    return content
