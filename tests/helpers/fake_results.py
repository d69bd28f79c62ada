"""A small results tree such as the pipeline leaves: two papers, every kind of artefact."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pandas as pd
import yaml
from tests.shared import ROOT

from fedsampling.base.files import read_record, sha256, write_record
from fedsampling.evidence import joining
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import load_paper
from fedsampling.report import site
from fedsampling.report.drawing import saving, views
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.style import panels, printed_level
from fedsampling.report.which_sampler.advice import RUNS_IN
from fedsampling.runs.rows import rows_of
from fedsampling.runs.store import Result

HOSTILE = '<script>alert("1")</script> & <b>"bold"</b>'
LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
FULL = "paper's size"
OUTCOMES = (  # verdict and grade of the first paper's claims, c1 to c6
    ("reproduced", FULL),
    ("partly reproduced", FULL),
    ("contradicted", FULL),
    ("depends on unstated choices", FULL),
    ("not run", "not run"),
    ("partly supports", "preliminary"),
)
KINDS = {"table1": "table", "table2": "text", "bench_matrix_rounds": "table"}
RUNS = {  # whose provenance artefacts have
    **{"runs": 40, "seeds": list(range(10)), "seconds": 75.0, "peak_mb": 300.4},
    **{"hashes": ["ab" * 32], "code": ["cd" * 32], "commit": ["ef" * 20]},
    **{"package": ["0.1.0"], "python": ["3.11.7"], "device": ["cpu: EPYC"]},
    "versions": {"numpy": "2.4.6", "snakemake": "9.27.1", "torch": "2.15.0"},
    **{"started": "2026-11-21T02:00:00Z", "finished": "2026-11-21T02:10:00Z"},
    "inputs": {"ijcnn1.tr": "12" * 32},
}
GAP = {"name": "the gap", "unit": "dB", "value": 22.8, "low": 22.1, "high": 23.4}
GAP |= {"least": 22.1, "most": 24.1, "paper": 23.1}
READINGS = [
    {"setting": setting, "verdict": verdict, "ours": f"{gap} dB", "drawn": [GAP | {"value": gap}]}
    for setting, verdict, gap in (
        ("four noisy agents", "reproduced", 7.4),
        ("none", "depends on unstated choices", 5.0),
    )
]

# The first claim on fresh seeds, as the rule registered before them judges it.
CONFIRMATION = {
    **{"verdict": "reproduced", "grade": FULL, "ours": "22.9 dB [22.5, 23.3]"},
    **{"reason": "The fresh interval lies within the margin.", "parts": {"the gap": "holds"}},
    **{"drawn": [GAP | {"value": 22.9, "low": 22.5, "high": 23.3}], "readings": []},
    **{"draws": "clients, delays and training", "seeds": 5, "look": 2, "looks": [3, 5, 10]},
    **{"hours": 0.5, "registered": "2026-11-28T20:15:00+00:00", "commit": "ab12" * 10},
    **{"first_run": "2026-11-28T21:00:00Z", "caveat": "The target is arbitrary."},
}
PRICE = {
    **{"seeds": 12, "look": 2, "looks": 3, "hours": 3.4},
    "command": "fedsampling decide first2022paper/c2",
}


@dataclass(frozen=True)
class Results:
    """Where the plain files are, and how to build their report."""

    root: Path

    def papers(self):
        folder = self.root / "papers"
        return {key: load_paper(key, folder) for key in sorted(p.name for p in folder.iterdir())}

    def build(self, out="report"):
        site.build(
            self.root / "results",
            self.papers(),
            self.root / "results" / out,
            project=self.root,
            config={"scale": "quick", "data": "embedded", "papers": "all"},
            cards=[path.stem for path in (self.root / "results" / "cards").glob("*.json")],
        )
        return self.root / "results" / out


def make(root):
    """Make the tree; :func:`add_cards` adds the data sets' cards."""
    (root / "workflow" / "rules").mkdir(parents=True)
    (root / "Snakefile").write_text('include: "workflow/rules/report.smk"\n')
    (root / "workflow" / "rules" / "report.smk").write_text("rule report:\n    shell: 'true'\n")
    (root / "CITATION.cff").write_bytes((ROOT / "CITATION.cff").read_bytes())
    quick = {"scale": "quick", "data": "embedded"}
    _paper(root, "first2022paper", ["figure1", "table1", "table2"], OUTCOMES)
    _paper(root, "second2025paper", ["figure3"], (("reproduced", FULL),), link="")
    _draw(root, "first2022paper", "figure1", quick)
    _draw(root, "first2022paper", "table1", quick, columns=24)
    _draw(root, "first2022paper", "table2", {"scale": "quick", "data": "none"}, columns=2)
    _draw(root, "second2025paper", "figure3", {"scale": "paper", "data": "official"})
    _summarise(root, "first2022paper", ["a" * 20, "b" * 20])
    _summarise(root, "second2025paper", ["b" * 20, "c" * 20])
    return Results(root)


def _summarise(root, key, hashes):
    """Write the summary of an experiment with these runs, of two seconds each."""
    table = pd.DataFrame({"at": [1], "metric": ["loss"], "value": [0.5]})
    lists = {name: None for name in ("code", "package", "commit", "python")}
    origin = {**lists, "versions": {}, "seconds": 2.0, "peak_mb": 1.0, "inputs": {}}
    origin |= {"started": RUNS["started"], "finished": RUNS["finished"], "unverified": False}
    runs = [
        (
            *("base", "md"),
            Result(
                rows_of(table),
                {
                    **origin,
                    "hash": name,
                    "spec": {"seed": seed, "data": "generated"},
                    "device": "cpu: EPYC, 1 thread",
                },
            ),
        )
        for seed, name in enumerate(hashes)
    ]
    out = root / "results" / "summaries" / key / "runs.parquet"
    joining.write(runs, {"cases": {"base": {}}}, {"scale": "quick"}, out)


def add_cards(root):
    """Lay two cards beside the artefacts: of a stand-in, and of a copy nobody else vouches for."""
    folder = root / "results" / "cards"
    folder.mkdir()
    _card(folder, "digits", ["first2022paper", "second2025paper"], "embedded", ["embedded data"])
    _card(folder, "images", ["first2022paper"], "official", ["unverified copy"])
    _card(folder, "other", ["another2020paper"], "official", [])
    waves = {"dataset": "waves", "data": "generated", "papers": ["first2022paper"], "badges": []}
    nothing = {"notes": [HOSTILE], "origins": [], "inputs": {}, "partitions": []}
    write_record(folder / "waves.json", {**waves, **nothing})


def rising(rounds, provenance):
    """Accuracies of two samplers and three seeds, and 100 bits a round."""
    rows = [
        {"case": "base", "sampler": name, "seed": seed, "at": at, "metric": metric, "value": value}
        for name in ("md", "uniform")
        for seed in range(3)
        for at in range(1, rounds + 1)
        for metric, value in (("accuracy", 0.1 * at + 0.1 * seed), ("model_bits", 100.0))
    ]
    samplers = {name: {"name": name} for name in ("md", "uniform")}
    settings = {"title": "Runs", "samplers": samplers, "cases": {"base": {}}}
    return Summary(pd.DataFrame(rows), settings, provenance)


def add_views(root):
    """Write the run explorer's views of an experiment."""
    runs = rising(4, {"scale": "paper", "run_data": ["official"], "unverified": False})
    folder = root / "results" / "explorer" / "first2022paper" / "runs"
    views.save(runs, "runs", folder, {"scale": "paper", "data": "official"})


def add_crossmatrix(root):
    """Add the comparison of all schemes: MD, one of unknown name, and one that missed a target."""
    origin = {"scale": "reduced", "data": "official"}
    artefacts = ["bench_ranks", "bench_matrix_rounds", "clients_three"]
    _paper(root, "crossmatrix", artefacts, (), link="", year=2026)
    _draw(root, "crossmatrix", "clients_three", origin)
    _draw(root, "crossmatrix", "bench_ranks", origin)
    _draw(root, "crossmatrix", "bench_matrix_rounds", origin, columns=2)
    folder = root / "results" / "artefacts" / "crossmatrix"
    (folder / "bench_ranks" / "bench_ranks.csv").write_text(
        "measure,scheme,speed_up,low,high,rank,families,reached,runs,needs\n"
        "rounds,md,1.0,1.0,1.0,2,3,9,9,\nrounds,tifl,1.5,1.2,1.8,1,3,9,9,delays\n"
        "rounds,newest-m-5,0.5,0.4,0.6,3,3,9,9,\nbits,md,1.0,1.0,1.0,1,3,9,9,\n"
        "rounds,target,0.5,0.2,0.9,,1,1,3,labels\n"
    )
    speed_ups = {"A": 1.5, "B": 1.6, "C": 1.4}
    rows = [
        f"{name},set_{family},{family},labels,{reached},3,{value},0.9,2.5,{family},False,True,False,5,{runs_in}"
        for runs_in, (family, speed_up) in product(RUNS_IN[:2], speed_ups.items())
        for name, value, reached in (("md", 1.0, 3), ("tifl", speed_up, 3), ("target", 0.5, 1))
    ]
    (folder / "bench_matrix_rounds" / "bench_matrix_rounds.csv").write_text(
        "scheme,set,title,differ,reached,runs,speed_up,speed_up_low,speed_up_high,family,unequal,"
        "skewed,away,worlds,runs_in\n" + "\n".join(rows) + "\n"
    )
    for name in artefacts:
        redraw(folder / name)


def redraw(folder):
    """Describe an artefact's files as they are now."""
    content = read_record(folder / "artefact.json")
    digests = {form: sha256(folder / name) for form, name in content["files"].items()}
    change(folder / "artefact.json", digests=digests)


def change(path, **values):
    """Write a record with other values."""
    write_record(path, read_record(path) | values)


def _card(folder, name, papers, data, badges):
    origin = {
        **{"dataset": name, "edition": "sheets", "verified": False, "files": 26},
        "size": None if data == "embedded" else 101_234_567,
        "becomes": [f"50,000 images {LONG_WORD}"],
        "state": "compared with the copy known to this project",
        "urls": [f"https://example.org/{LONG_WORD}/{LONG_WORD}/sheets.zip"],
        "page": "https://example.org/data",
        "licence": HOSTILE,
        "citation": "Somebody. Images.",
        "checksums": {f"train_{n:02d}.webp": f"sha256:{n:064x}" for n in range(26)},
    }
    statistics = {f"statistic {n}": 1234.5678 for n in range(15)}
    partition = {
        "users": [f"{papers[0]}/regression: {LONG_WORD}"],
        "settings": {"alpha": 0.5, "note": HOSTILE},
        "statistics": statistics | {"sample shape": "32 x 32"},
    }
    card = {"dataset": name, "data": data, "papers": papers, "badges": badges, "notes": [HOSTILE]}
    parts = {"origins": [origin], "inputs": {"train.bin": "ab" * 32}, "partitions": [partition]}
    write_record(folder / f"{name}.json", card | parts)


def _paper(root, key, artefacts, outcomes, link="x", year=0):
    folder = root / "papers" / key
    folder.mkdir(parents=True)
    is_first = key.startswith("first")
    spec = {
        "key": key,
        "title": "On Sampling & Its <Discontents>",
        "authors": "Ada Lovelace, Émilie du Châtelet, Florence Nightingale",
        **{"year": year or int(key[-9:-5]), "venue": "Journal of Federated Sampling"},
        "url": "https://doi.org/10.1000/xyz" if link else "",
        "summary": "Clients are drawn with unequal probabilities.\n\nThat lowers the variance.",
        "choices": [{"name": LONG_WORD, "value": "two", "why": HOSTILE}],
        "experiments": {"runs": {"kind": "network"}},
        "artefacts": {
            name: {"kind": KINDS.get(name, "figure"), "title": "Deviation", "caption": HOSTILE}
            for name in [*artefacts, "figure9"]
        },
        "claims": {
            f"c{n}": {
                **{"statement": "The gap is large.", "artefact": artefacts[0], "unit": "dB"},
                **{"rule": "Reproduced if it does.", "reported": "23.1 dB", "margin": 1.0},
            }
            for n, _ in enumerate(outcomes, start=1)
        },
    }
    (folder / "paper.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    (folder / "paper.bib").write_text(f"@article{{{key},\n  title = {{On Sampling}},\n}}\n")
    (folder / "reported.csv").write_text(
        "id,artefact,claim,quantity,value,unit,where\ngap,figure1,c1,gap,23.1,dB,section V\n"
    )
    claims = [
        {
            "id": f"c{n}",
            "statement": f"{HOSTILE} The gap is large {LONG_WORD}",
            "artefact": artefacts[0] if n < 5 else "figure9",
            **{"reported": "23.1 dB", "ours": "22.8 dB [22.1, 23.4]", "margin": "1 dB"},
            **{"verdict": verdict, "grade": grade, "rule": "Reproduced if it does."},
            "reason": "The interval lies within the margin that the specification declares.",
            "readings": READINGS if verdict.startswith("depends") else [],
            "declared": {"when": "after seeing", "date": "2026-11-22", "why": "The text says so."},
            "caveat": "The target is arbitrary." if n == 1 else "",
            "covers": "2 of 4 experiments" if n == 6 else "",
            **{"scale": "reduced" if n == 6 else "paper", "seeds": 5},
            "drawn": [GAP] if n < 3 else [],
            "kind": "empirical" if is_first else "code check",
            "parts": {1: {"the gap": "holds"}, 2: {"order": "holds", "size": "open"}}.get(n, {}),
            "confirmation": CONFIRMATION if n == 1 and is_first else None,
            "price": PRICE if n == 2 else None,
        }
        for n, (verdict, grade) in enumerate(outcomes, start=1)
    ]
    (root / "results" / "claims").mkdir(parents=True, exist_ok=True)
    write_record(root / "results" / "claims" / f"{key}.json", {"paper": key, "claims": claims})


def _draw(root, key, name, origin, columns=0):
    """Save a table, or without columns a figure, as drawn from 40 runs; data `none` has no runs."""
    if columns:
        artefact = Artefact(pd.DataFrame({f"column {n}": 4 * [n + 0.123] for n in range(columns)}))
    else:
        with panels(1, 2) as (figure, all_axes):
            for axes in all_axes:
                axes.plot([1, 10, 100], [0.0, -10.0, -23.1], label="ISFedAvg")
                axes.set(xlabel="iteration", ylabel="MSD (dB)")
                printed_level(axes, -23.1)
                axes.legend()
        alt = "Mean-square deviation falls by 23 dB."
        artefact = Artefact(pd.DataFrame({"at": [1, 100], "msd": [0.0, -23.1]}), figure, alt)
    artefact = replace(artefact, notes=("The gap depends on how much the noise differs.",))
    kinds = {"scale": origin["scale"], "run_data": [origin["data"]], "unverified": False}
    runs = {} if origin["data"] == "none" else {"runs": Summary(pd.DataFrame(), {}, RUNS | kinds)}
    folder = root / "results" / "artefacts" / key / name
    saving.save(artefact, load_paper(key, root / "papers"), name, folder, runs, origin)
