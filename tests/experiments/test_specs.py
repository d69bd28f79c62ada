"""From a paper and a configuration to runs: overrides, errors, and stable hashes."""

import json

import pytest
import yaml
from tests.shared import line_of, lines_of

from fedsampling.base.errors import InputError
from fedsampling.base.nested import merge
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import changed, resolve_experiments, scale_of
from fedsampling.experiments.selecting import load_papers
from fedsampling.experiments.specs import RunSpec, jobs

TRAINING = yaml.safe_load("""
kind: federated
title: Training
dataset:
  {name: regression, agents: 10, samples: 8, dimension: 2, eigenvalues: [1, 2], noise: [0.1, 1]}
model: {name: linear, rho: 0.001}
work: {step: 0.01, epochs: [1, 2], batch: [1, 3]}
samplers: {plain: {name: uniform, m: 3}, weighted: {name: md, m: 3}}
rounds: 20
every: 2
seeds: 5
seed_block: 2
quick: {rounds: 4, seeds: 2}
""")
CLASSIFICATION = TRAINING | {
    "dataset": {"name": "ijcnn1", "agents": 10, "smallest": 5, "largest": 9, "alpha": 0.5},
    "model": {"name": "logistic", "rho": 0},
}
WEIGHTS = yaml.safe_load("""
kind: weights
title: Weights
importance: equal
draws: 100
cases: {few: {clients: 4, m: 2}, many: {clients: 40, m: 5}}
samplers: {md: {name: md}}
seeds: [7]
""")
TEXTS = dict.fromkeys(("title", "authors", "venue", "url", "summary"), "")


def paper(**experiments):
    return Paper(key="p", year=2022, experiments=experiments, artefacts={}, claims={}, **TEXTS)


def config(scale="paper", data="embedded", **overrides):
    return Config(scale=scale, data=data, papers=["p"], overrides={"p": overrides})


def hashes(experiment, **how):
    return [run.hash for job in jobs(paper(e=experiment), config(**how)) for run in job.runs]


def lines(**overrides):
    return lines_of(jobs, paper(training=TRAINING, weights=WEIGHTS), config(**overrides))


class TestErrors:
    @pytest.mark.parametrize(
        ("changes", "line"),
        [
            ({"samplers": {"*": {"mm": 3}}}, "samplers.*.mm: no sampler has this setting; did you"),
            ({"samplers": {"plain": {"m": 11}}}, "samplers.plain.m: 11 exceeds the 10 clients"),
            ({"samplers": {"a b": {"name": "md", "m": 1}}}, "samplers: 'a b' becomes a folder; "),
            ({"samplers": {"plain": None, "weighted": None}}, "samplers: empty; add at least one"),
            ({"seeds": [1, 2, 1]}, "seeds: duplicate 1; remove one"),
            ({"seeds": []}, "seeds: no seeds; give at least one"),
            ({"seeds": 0}, "seeds: 0 is out of range; must be 1 to 10,000, or a list"),
            ({"seeds": [2**32]}, "seeds.0: 4294967296 is out of range"),
            ({"cases": {"../up": {}}}, "cases: '../up' becomes a folder; "),
            ({"cases": {"wide": {"rounds": 0}}}, "cases.wide.rounds: 0 is out of range"),
            (
                {"worlds": True, "seed_block": 1, "problem_seed": 3},
                "problem_seed: has no effect with worlds, where",
            ),
        ],
    )
    def test_an_invalid_override_is_one_line(self, changes, line):
        line = f"overrides.p.training.{line}"
        assert [text[: len(line)] for text in lines(training=changes)] == [line]

    def test_an_error_of_the_papers_own_file_does_not_name_overrides(self):
        line = "p.e.rounds: 0 is out of range; must be at least 1"
        assert line_of(jobs, paper(e=TRAINING | {"rounds": 0}), config()) == line

    def test_all_errors_of_all_experiments_come_at_once(self):
        result = lines(
            training={"rounds": 0, "samplers": {"plain": {"m": 11}, "weighted": {"m": -1}}},
            weights={"draws": 1},
            wieghts={},
        )
        assert sorted(line.split(": ")[0] for line in result) == [
            "overrides.p.training.rounds",
            "overrides.p.training.samplers.weighted.m",
            "overrides.p.weights.draws",
            "overrides.p.wieghts",
        ]
        assert result[0].endswith("no such experiment; did you mean 'weights'?")

    @pytest.mark.parametrize(
        ("override", "line"),
        [
            ({"tuned_as": "wieghts"}, "tuned_as: 'wieghts' is unknown; did you mean 'weights'?"),
            ({"chosen": {"plane": "base"}}, "chosen: 'plane' is unknown; did you mean 'plain'?"),
            ({"chosen": {"plain": "bas"}}, "chosen: 'bas' is unknown; did you mean 'base'?"),
            ({"always": {"bas": []}}, "always: 'bas' is unknown; did you mean 'base'?"),
            ({"always": {"base": ["plane"]}}, "always: 'plane' is unknown; did you mean 'plain'?"),
        ],
    )
    def test_unknown_names_in_what_tuning_chose_are_errors(self, override, line):
        assert lines(training=override) == [f"overrides.p.training.{line}"]

    def test_what_tuning_chose_may_name_samplers_that_overrides_remove(self):
        written = TRAINING | {"always": {"base": ["plain"]}, "chosen": {"plain": "base"}}
        assert jobs(paper(e=written), config(e={"samplers": {"plain": None}}))


class TestLoading:
    def write(self, folder, key="one", **changes):
        content = {"key": key, "year": 2022, **TEXTS, "experiments": {"e": TRAINING}}
        content |= {"artefacts": {}, "claims": {}} | changes
        (folder / "one").mkdir()
        (folder / "one" / "paper.yaml").write_text(json.dumps(content))

    def test_unknown_papers_and_overrides_without_effect_are_reported_together(self, tmp_path):
        self.write(tmp_path)
        wrong = Config(papers=["on", "xyz"], overrides={"one": {}})
        assert lines_of(load_papers, wrong, tmp_path) == [
            "overrides.one: not among the selected papers; did you mean 'on'?",
            "papers: 'on' is unknown; did you mean 'one'?",
            "papers: 'xyz' is unknown; known: one",
        ]

    def test_the_experiment_whose_tuning_applies_must_exist(self, tmp_path):
        self.write(tmp_path, experiments={"e": TRAINING, "f": TRAINING | {"tuned_as": "ee"}})
        line = "experiments.f.tuned_as: 'ee' is unknown; did you mean 'e'?"
        found = lines_of(load_papers, Config(papers=["one"]), tmp_path)
        assert found == [f"{tmp_path}/one/paper.yaml: {line}"]

    def test_two_papers_whose_folders_have_the_same_name_are_an_error(self, tmp_path):
        self.write(tmp_path)
        line = line_of(load_papers, Config(papers=["one", "other/one"]), tmp_path)
        assert line.startswith(f"papers: {tmp_path}/one and other/one have the same name, by which")

    def test_errors_in_a_papers_file_name_the_file(self, tmp_path):
        self.write(tmp_path, year="soon", titel="")
        assert lines_of(load_papers, Config(papers=["one"]), tmp_path) == [
            f"{tmp_path}/one/paper.yaml: year: 'soon' is invalid; must be a whole number",
            f"{tmp_path}/one/paper.yaml: titel: unknown key; did you mean 'title'?",
        ]

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("quick", 5),
            ("tuning", 5),
            ("cases", 5),
            ("cases.base.samplers", ["md"]),
            ("cases.base.samplers.plain", 5),
            ("samplers.mine", "uniform"),
        ],
    )
    def test_a_value_in_place_of_a_mapping_is_one_line(self, tmp_path, key, value):
        every = {"*": {"m": 3}, "plain": {"name": "md"}}
        changes = value
        for part in reversed(key.split(".")):
            changes = {part: changes}
        self.write(tmp_path, experiments={"e": merge(TRAINING | {"samplers": every}, changes)})

        def load():
            paper = load_papers(config := Config(papers=["one"], scale="quick"), tmp_path)["one"]
            return resolve_experiments(paper, config)

        line = f"e.{key}: {value!r} is invalid; must be 'key: value' lines"
        found = [each.partition(": experiments.")[2] or each for each in lines_of(load)]
        assert line in [each.removeprefix("one.") for each in found]

    def test_unknown_names_in_a_paper_are_reported(self, tmp_path):
        named = {"experiments": ["E"], "cases": ["basis"]}
        drawn = {"kind": "figure", "title": "", "caption": "", **named}
        claim = dict.fromkeys(("statement", "reported", "unit", "rule"), "") | {"margin": 1}
        claims = {"c1": {**claim, "artefact": "figur1"}}
        self.write(tmp_path, "two", artefacts={"figure1": drawn}, claims=claims)
        found = lines_of(load_papers, Config(papers=["one"]), tmp_path)
        keys = [line.split(": ")[1] for line in found]
        assert keys == [*(f"artefacts.figure1.{n}" for n in named), "claims.c1.artefact", "key"]


class TestPrecedence:
    def test_overrides_have_precedence_over_scale_and_paper(self):
        quick = {"scale": "quick"}
        for how, rounds in (({}, 20), (quick, 4), (quick | {"e": {"rounds": 9}}, 9)):
            resolved = resolve_experiments(paper(e=TRAINING), config(**how))["e"]
            assert resolved.experiment.settings["rounds"] == rounds

    @pytest.mark.parametrize(
        ("scale", "override", "result"),
        [
            ("paper", {}, "paper"),
            ("quick", {}, "quick"),
            ("quick", {"rounds": 20, "seeds": 5}, "paper"),
            ("reduced", {}, "paper"),  # whose file does not reduce it
            ("paper", {"rounds": 19}, "changed"),
            ("paper", {"seeds": [0]}, "changed"),
            ("paper", {"seeds": 9, "seed_block": 9}, "paper"),  # more of the same
            ("paper", {"samplers": {"plain": None}}, "changed"),
            ("paper", {"samplers": {"mine": {"name": "uniform", "m": 1}}}, "paper"),
            ("quick", {"rounds": 19}, "changed"),
        ],
    )
    def test_an_experiment_with_all_runs_of_the_papers_size_has_paper_scale(
        self, scale, override, result
    ):
        overrides = {"e": override} if override else {}
        assert scale_of(paper(e=TRAINING), "e", config(scale=scale, **overrides)) == result

    def test_changed_settings_are_listed_with_both_values(self):
        override = {"rounds": 19, "seeds": [0], "samplers": {"plain": None}}
        result = changed(paper(e=TRAINING), "e", config(scale="paper", e=override))
        assert "rounds 19 (20)" in result
        assert [line for line in result if line.startswith("seeds ")] == ["seeds 0 (5 values)"]
        assert "samplers.plain.name none (" in " ".join(result)

    def test_a_case_overrides_settings_and_those_of_samplers_it_names(self):
        cases = {"base": {}, "more": {"rounds": 99, "samplers": {"plain": {"m": 4}}}}
        listed = jobs(paper(e=TRAINING | {"cases": cases}), config(e={"rounds": 50}))
        runs = {(job.case, job.sampler): job.runs[0].settings for job in listed}
        assert {name: (run["rounds"], run["sampler"]["m"]) for name, run in runs.items()} == {
            **{("base", sampler): (50, 3) for sampler in ("plain", "weighted")},
            **{("more", "plain"): (99, 4), ("more", "weighted"): (99, 3)},
        }

    def test_null_removes_a_case_and_a_sampler(self):
        removed = {"cases": {"few": None}}
        overrides = {"e": removed, "t": {"samplers": {"plain": None}}}
        result = jobs(paper(e=WEIGHTS, t=TRAINING), config(**overrides))
        assert {(job.case, job.sampler) for job in result} == {("many", "md"), ("base", "weighted")}

    def test_blocks_divide_the_seeds_in_order(self):
        result = jobs(paper(e=TRAINING), config(e={"seeds": [9, 3, 4]}))
        seeds = [[run.seed for run in job.runs] for job in result if job.sampler == "plain"]
        assert seeds == [[9, 3], [4]]
        assert [job.block for job in result] == [0, 1, 0, 1]


class TestHash:
    """Finished runs are looked up by their hash, which test_pinned_hashes.py pins."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"title": "Another"},
            {"seed_block": 5},
            {"samplers": {"plain": None, "renamed": {"name": "uniform", "m": 3}, "weighted": None}},
            {"cases": {"base": None, "renamed": {}}},
            {"dataset": {"eigenvalues": [1.0, 2.0]}},
            {"rounds": 20.0},
            {"problem_seed": 0},
        ],
        ids=str,
    )
    def test_names_blocks_and_number_formats_do_not_change_the_hash(self, changes):
        base = TRAINING | {"cases": {"base": {}}}
        assert set(hashes(base, e=changes)) <= set(hashes(base))

    @pytest.mark.parametrize(
        "changes",
        [
            {"problem_seed": 1},
            {"seeds": [5, 6]},
            {"work": {"correct": False}},
            {"dataset": {"noise": [0.1, 1.1]}},
            {"samplers": {"plain": {"m": 2}, "weighted": {"m": 2}}},
        ],
        ids=str,
    )
    def test_settings_data_and_seed_change_the_hash(self, changes):
        assert not set(hashes(TRAINING, e=changes)) & set(hashes(TRAINING))

    def test_in_worlds_each_seed_is_the_problem_seed_of_all_samplers(self):
        worlds = TRAINING | {"worlds": True, "seeds": [3, 8]}
        listed = jobs(paper(e=worlds | {"seed_block": 1}), config())
        seeds = [(job.sampler, *(run.seed for run in job.runs)) for job in listed]
        assert seeds == [(name, seed) for name in TRAINING["samplers"] for seed in (3, 8)]
        for job in listed:
            (run,) = job.runs
            assert run.settings["problem_seed"] == job.simulation.problem_seed == run.seed
        with pytest.raises(InputError, match="seed_block: 2 seeds with worlds have different"):
            jobs(paper(e=worlds | {"seed_block": 2}), config())

    def test_the_source_of_the_data_matters_only_to_runs_that_read_data(self):
        assert hashes(TRAINING, data="official") == hashes(TRAINING)
        assert not set(hashes(CLASSIFICATION, data="official")) & set(hashes(CLASSIFICATION))

    def test_nan_in_settings_is_refused(self):
        with pytest.raises(ValueError, match="JSON"):
            _ = RunSpec({"rho": float("nan")}, "generated", 0).hash

    def test_the_order_of_keys_does_not_change_the_hash(self):
        reversed_keys = dict(reversed(TRAINING.items()))
        reversed_keys["dataset"] = dict(reversed(TRAINING["dataset"].items()))
        assert hashes(reversed_keys) == hashes(TRAINING)


@pytest.mark.parametrize(
    ("chosen", "always", "expected"),
    [
        ("fast", {}, {"fast"}),
        ("fast", {"slow": ["plain"]}, {"slow", "fast"}),
        ("gone", {}, {"slow", "fast", "faster"}),
    ],
)
def test_at_paper_scale_a_sampler_runs_its_chosen_and_listed_cases(chosen, always, expected):
    cases = {"slow": {}, "fast": {"work": {"step": 0.1}}, "faster": {"work": {"step": 0.2}}}
    untuned = paper(training=TRAINING | {"cases": cases, "always": always})
    tuned = untuned.model_copy(update={"chosen": {"training": {"plain": chosen}}})
    result = jobs(tuned, Config(scale="paper"))
    assert {job.case for job in result if job.sampler == "plain"} == expected
    assert {job.case for job in result if job.sampler == "weighted"} == {*cases}
    quick = [[job.name for job in jobs(p, Config(scale="quick"))] for p in (tuned, untuned)]
    assert quick[0] == quick[1]
