"""The table of mutations: changes to one input each, by name, and what they do to the folder."""

import copy
import os
import shutil

import h5py
import numpy as np
import pandas as pd
import yaml
from tests.workflow.mutations.world import CONFIG, PAPER


def text(name, old, new):
    """Replace a text in a file."""

    def change(root):
        content = (root / name).read_text()
        assert old in content, (name, old)
        (root / name).write_text(content.replace(old, new, 1))

    return change


def quietly(name, old, new):
    """Replace a text by another one of the same length, and restore the file's date."""

    def change(root):
        assert len(old) == len(new)
        status = (root / name).stat()
        text(name, old, new)(root)
        os.utime(root / name, ns=(status.st_atime_ns, status.st_mtime_ns))

    return change


def written(name, content):
    """Write a file, which may be new."""

    def change(root):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)

    return change


def removed(*patterns):
    """Remove files, at least one for each pattern."""

    def change(root):
        for pattern in patterns:
            paths = sorted(root.glob(pattern))
            assert paths or not (root / "results").exists(), pattern
            for path in paths:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def value(*path, to):
    """Set a value of paper.yaml."""

    def change(root):
        file = root / "papers" / "small" / "paper.yaml"
        content = yaml.safe_load(file.read_text())
        part = content
        for key in path[:-1]:
            part = part[key]
        if to is None:
            del part[path[-1]]
        else:
            part[path[-1]] = to
        file.write_text(yaml.safe_dump(content, sort_keys=False))

    return change


def configured(**changes):
    """Change config.yaml."""
    return written("config.yaml", yaml.safe_dump({**CONFIG, **changes}))


def overridden(experiment, **changes):
    """Override settings of an experiment."""
    return configured(overrides={"small": {experiment: changes}})


def variable(name, content="2"):
    """Set an environment variable, as the caller's shell would."""

    def change(root):
        os.environ[name] = content

    return change


def array(name, write):
    """Write another array into a file."""
    return lambda root: write(root / name)


def truncated(pattern):
    """Cut a result in half."""

    def change(root):
        for path in sorted(root.glob(pattern))[:1]:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return change


def _h5(path):
    path.unlink()
    with h5py.File(path, "w") as file:
        file["x"] = np.array([7.0, 2.0])


def _leaves(content, *path):
    """Yield the keys of a mapping that hold plain values, and the values."""
    for key, part in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(part, dict | list) and part and not (path and path[-1] == "seeds"):
            yield from _leaves(part, *path, key)
        else:
            yield (*path, key), part


def _other(path, old):
    """Return another valid value of a key of paper.yaml, or None if there is none."""
    fixed = {"key", "name", "kind", "file", "artefact", "date"}
    if path[-1] in fixed or ("experiments" in path[:1] and path[-1] in ("inputs", "path")):
        return None
    if path[-1] == "url":
        return "https://example.org/other"
    if path[-1] == "verdict":
        return "reproduced"
    if path[-1] == "when":
        return "after seeing"
    if path[-1] == "client_info":
        return None
    if isinstance(path[-1], int):
        return None
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return old + 1
    if isinstance(old, float):
        return old + 0.25
    return f"{old} changed" if isinstance(old, str) else None


def of_the_paper():
    """Yield a mutation for each key of paper.yaml with a plain value, and more."""
    for path, old in _leaves(PAPER):
        if (new := _other(path, old)) is not None:
            yield "paper.yaml " + ".".join(map(str, path)), value(*path, to=new)
    claims = ("claims", "c1")
    yield "a claim's transfer", value(*claims, "transfer", to=True)
    yield "a claim's kind", value("claims", "c3", "kind", to="text against tables")
    yield "a claim's cases", value(*claims, "cases", to=["two"])
    yield "a claim's cases, both", value(*claims, "cases", to=["one", "two"])
    yield "a claim's experiments", value(*claims, "experiments", to=["apart"])
    yield "a claim's artefact", value(*claims, "artefact", to="theory")
    yield "a claim's open choices", value(*claims, "open_choices", to=[])
    yield "a claim's history", value(*claims, "history", to=[])
    yield "a claim's declaration", value(*claims, "declared", to=None)
    yield "a claim less", value("claims", "c2", to=None)
    yield (
        "a choice's name",
        lambda root: (
            value("choices", 0, "name", to="other")(root),
            value(*claims, "open_choices", to=["other"])(root),
        ),
    )
    yield (
        "a choice more",
        value("choices", to=[*PAPER["choices"], {"name": "new", "value": "1", "why": "Open."}]),
    )
    yield "an artefact's cases", value("artefacts", "numbers", "cases", to=["two"])
    yield "an artefact's cases, none", value("artefacts", "numbers", "cases", to=None)
    yield (
        "an artefact's experiments",
        value("artefacts", "numbers", "experiments", to=["own_kind", "apart"]),
    )
    yield (
        "an artefact's experiments, more",
        value("artefacts", "curve", "experiments", to=["own_data", "apart"]),
    )
    yield "an artefact's partial", value("artefacts", "curve", "partial", to=True)
    yield (
        "an artefact less",
        lambda root: (
            value("artefacts", "theory", to=None)(root),
            value("claims", "c3", to=None)(root),
        ),
    )
    yield "seeds of the paper's size", value("experiments", "own_kind", "seeds", to=7)
    yield "seeds of the paper's size, fewer", value("experiments", "own_kind", "seeds", to=2)
    yield "seeds of the paper's size, a list", value("experiments", "own_data", "seeds", to=[0, 5])
    yield (
        "an experiment's case more",
        value(
            "experiments",
            "own_kind",
            "cases",
            to={**PAPER["experiments"]["own_kind"]["cases"], "x": {"scale": 5.0}},
        ),
    )
    yield (
        "an experiment's samplers",
        value(
            "experiments",
            "own_data",
            "samplers",
            to={"mine": {"name": "mine"}, "here": {"name": "md", "m": 2}},
        ),
    )
    yield (
        "an experiment's reduced scale",
        value("experiments", "own_kind", "reduced", to={"seeds": 2, "scale": 1.0}),
    )
    yield (
        "an experiment's data source columns",
        value(
            "experiments",
            "own_data",
            "dataset",
            to={**PAPER["experiments"]["own_data"]["dataset"], "test_share": 0.4},
        ),
    )
    yield (
        "an experiment more",
        value(
            "experiments", "new", to=copy.deepcopy(PAPER["experiments"]["apart"]) | {"scale": 9.0}
        ),
    )


def of_the_papers_files():
    """Yield mutations of the files in a paper's folder."""
    paper, one = "papers/small", ("VALUE = 1", "VALUE = 2")
    modules = {
        "figures.py": ("word", "wort") if False else ("ylabel=paper.title", 'ylabel="y"'),
        "near.py": ("word", "term"),
        "deep/second.py": ("third.VALUE", "third.VALUE + 1"),
        "deep/deeper/third.py": one,
        "deep/deeper/far.py": one,
        "deep/deeper/deepest/farthest.py": one,
        "named.py": one,
        "later.py": one,
        "claims.py": ("It is", "It was"),
        "rules/judging.py": ("0", "100"),
        "simulations.py": ("self.scale * s", "self.scale * s * 2"),
        "kinds/formula.py": ("import SHIFT", "import SHIFT\n\nSHIFT *= 2"),
        "kinds/constants.py": ("0.25", "0.75"),
        "by_words.py": one,
        "kind.json": ("1.5", "2.5"),
        "plain.csv": ("1\n", "7\n"),
        "frame.csv": ("1\n", "7\n"),
        "deep/values.json": ("1", "7"),
        "values.txt": ("1", "7"),
        "values.dat": ("a", "z"),
        "more.yaml": ("1", "7"),
        "reported.csv": ("0.5", "0.7"),
        "paper.bib": ("2020", "2021"),
        "findings.md": ("Nothing", "Something"),
    }
    for name, (old, new) in modules.items():
        yield f"{name}", text(f"{paper}/{name}", old, new)
        if len(old) == len(new):
            yield f"{name}, same size and date", quietly(f"{paper}/{name}", old, new)
    x = np.array([7.0, 2.0])
    yield "values.npy", array(f"{paper}/values.npy", lambda path: np.save(path, x))
    yield "values.npz", array(f"{paper}/values.npz", lambda path: np.savez(path, x=x))
    frame = pd.DataFrame({"x": x})
    yield "values.parquet", array(f"{paper}/values.parquet", frame.to_parquet)
    yield "cube.h5", array(f"{paper}/cube.h5", _h5)
    yield "large.bin", quietly(f"{paper}/large.bin", "1" * 1000, "0" * 1000)
    yield "a file more in a listed folder", written(f"{paper}/listed/two.txt", "")
    yield "a file less in a listed folder", removed(f"{paper}/listed/one.txt")
    yield (
        "a file renamed in a listed folder",
        lambda root: (root / paper / "listed" / "one.txt").rename(
            root / paper / "listed" / "new.txt"
        ),
    )
    yield (
        "a module becomes a package",
        lambda root: (
            (root / paper / "named.py").unlink(),
            written(f"{paper}/named/__init__.py", "VALUE = 5\n")(root),
        ),
    )
    yield "a folder gets an __init__", written(f"{paper}/deep/__init__.py", "X = 1\n")
    yield (
        "an artefact moves to another file",
        lambda root: (
            text(f"{paper}/figures.py", "def theory", "def _theory")(root),
            written(
                f"{paper}/figures_new.py",
                "import pandas as pd\n"
                "from fedsampling.report.drawing.artefacts import Artefact\n\n\n"
                "def theory(summaries, paper):\n    return Artefact(pd.DataFrame({'a': [1]}))\n",
            )(root),
        ),
    )
    yield (
        "chosen.csv",
        written(
            f"{paper}/chosen.csv",
            "experiment,sampler,case,step,score,chosen\nown_kind,none,one,,1,True\n",
        ),
    )
    yield "a data file less", removed(f"{paper}/values.txt")
    yield "extra, json", text("extra/values.json", "3", "4")
    yield "extra, json, same size and date", quietly("extra/values.json", "3", "4")
    yield "extra, npy", array("extra/values.npy", lambda path: np.save(path, x))
    yield "extra, a file more", written("extra/listed/two.txt", "")
    yield "extra, a file less", removed("extra/listed/one.txt")
    yield "a comment in a figure", text(f"{paper}/figures.py", "import csv", "# new\nimport csv")


def of_users():
    """Yield mutations of the user's sampler, model and data."""
    one = ("VALUE = 1", "VALUE = 2")
    files = {
        "sampler.py": ("shift % len", "(shift + 2) % len"),
        "first_help.py": ("second_help.VALUE", "second_help.VALUE + 1"),
        "second_help.py": ("import VALUE", "import VALUE\n\nVALUE += 1"),
        "third_help.py": one,
        "pack/__init__.py": None,
        "pack/inner/inner_help.py": ("import VALUE", "import VALUE\n\nVALUE += 1"),
        "pack/sibling.py": one,
        "literal_help.py": one,
        "computed_help.py": one,
        "lazy_help.py": one,
        "late_help.py": one,
        "at_load.json": ("1", "2"),
        "at_run.txt": ("1", "2"),
        "model.py": ("nn.Linear(3, 2)", "nn.Linear(3, 2, bias=False)"),
        "model_help.py": ("import SCALE", "import SCALE\n\nSCALE *= 2"),
        "model_second.py": ("1.0", "2.0"),
        "model.json": ("1.0", "2.0"),
    }
    for name, change in files.items():
        if change is None:
            yield (
                f"mine/{name}",
                written(f"mine/{name}", "from . import sibling\n\nsibling.VALUE = 4\n"),
            )
            continue
        yield f"mine/{name}", text(f"mine/{name}", *change)
        if len(change[0]) == len(change[1]):
            yield f"mine/{name}, same size and date", quietly(f"mine/{name}", *change)
    yield "mine, a file more in a listed folder", written("mine/listed/two.txt", "")
    yield "mine, a file less in a listed folder", removed("mine/listed/one.txt")
    yield (
        "mine, the sampler's title",
        text("mine/sampler.py", 'name="mine"', 'name="mine", title="Ours"'),
    )
    yield "mine, a comment", text("mine/sampler.py", "import json", "# new\nimport json")
    yield (
        "mine, a helper becomes a package",
        lambda root: (
            (root / "mine" / "third_help.py").unlink(),
            written("mine/third_help/__init__.py", "VALUE = 5\n")(root),
        ),
    )
    for name, old, new in (
        ("samples.csv", "\n0,", "\n1,"),
        ("info.csv", "1.5", "9.5"),
        ("delays.csv", "1.0", "9.0"),
    ):
        yield f"data/{name}", text(f"data/{name}", old, new)
        yield f"data/{name}, same size and date", quietly(f"data/{name}", old, new)
    yield (
        "data/info.csv, a column more",
        lambda root: (
            pd.read_csv(root / "data/info.csv")
            .assign(battery=1.0)
            .to_csv(root / "data/info.csv", index=False)
        ),
    )


def of_the_configuration():
    """Yield mutations of config.yaml and of the environment."""
    yield "overrides: seeds", overridden("own_kind", seeds=3)
    yield "overrides: a setting", overridden("own_kind", scale=4.0)
    yield "overrides: a case less", overridden("own_kind", cases={"two": None})
    yield "overrides: work", overridden("own_data", work={"step": 0.2})
    yield "overrides: rounds", overridden("own_data", rounds=6)
    yield "overrides: evaluation", overridden("own_data", evaluation={"every": 1})
    yield "overrides: model", overridden("own_data", model={"file": None, "name": "softmax"})
    yield "overrides: delays", overridden("own_data", delays=None)
    yield "overrides: client_info", overridden("own_data", dataset={"client_info": None})
    yield "overrides: the paper's own values", overridden("own_kind", seeds=2)
    yield "overrides: an experiment less", configured(overrides={"small": {"apart": None}})
    yield (
        "overrides: an artefact's experiment less",
        configured(overrides={"small": {"own_kind": None}}),
    )
    yield "experiments", configured(experiments=["small/own_kind"])
    yield "scale reduced", configured(scale="reduced")
    yield "scale paper", configured(scale="paper")
    yield "device", configured(device="cpu")
    yield "the mirror", configured(mirror="data")
    at_draw, at_run = ("LEVEL_AT_IMPORT", "LEVEL_NOW"), ("LEVEL_OF_KIND", "LEVEL_AT_RUN")
    for name in (*at_draw, *at_run, "LEVEL_OF_SAMPLER", "UNREAD"):
        yield f"variable {name}", variable(name)
    toy = "site-packages/toylib"
    yield (
        "a library's version",
        lambda root: (
            text(f"{toy}-1.0.dist-info/METADATA", "1.0", "1.1")(root),
            text(f"{toy}/__init__.py", "1", "2")(root),
        ),
    )


def of_results():
    """Yield mutations of the results themselves, and of where they are."""
    for pattern in (
        "results/artefacts/small/curve/curve.svg",
        "results/artefacts/small/numbers/artefact.json",
        "results/artefacts/small/theory",
        "results/claims/small.json",
        "results/summaries/small/own_kind.parquet",
        "results/explorer/small/own_data/views.json",
        "results/runs/small/own_kind/one/none/block-0.json",
        "results/cards/files.json",
        "results/report/index.html",
        "results/report",
        "results/plan.jsonl",
        "results/made",
        "results/config.json",
        ".steps.json",
    ):
        yield f"removed: {pattern}", removed(pattern)
    for pattern in (
        "results/artefacts/small/curve/curve.png",
        "results/plan.jsonl",
        "results/made/*/small.json",
    ):
        yield f"truncated: {pattern}", truncated(pattern)
    yield "the folder is moved", lambda root: None
    yield "nothing", lambda root: None


def of_the_package():
    """Yield mutations of the package's code, by file; these need other processes."""
    code = "src/fedsampling"
    yield "a colour", text(f"{code}/report/drawing/style.py", '"#0072B2"', '"#0072B3"')
    yield "a template", text(f"{code}/report/templates/base.html.j2", "<body", "<body data-x='1'")
    yield "a style sheet", text(f"{code}/report/templates/style.css", "body", "html body")
    yield "a source's address", text(f"{code}/data/sources/sources.yaml", "https://", "https://x")
    yield "the way of saving", text(f"{code}/report/drawing/saving.py", "dpi=160", "dpi=161")
    yield (
        "a badge",
        text(f"{code}/evidence/provenance.py", '"quick": "quick scale"', '"quick": "quick"'),
    )


TABLE = dict(
    item
    for part in (
        of_the_paper, of_the_papers_files, of_users, of_the_configuration, of_results
    )
    for item in part()
)  # fmt: skip
PACKAGE = dict(of_the_package())
