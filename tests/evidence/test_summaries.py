"""Summaries: curves over seeds, and runs that are missing, damaged or swapped."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.shared import line_of

from fedsampling.base.errors import InputError
from fedsampling.evidence import joining, summaries
from fedsampling.evidence.statistics import mean
from fedsampling.evidence.summaries import Summary
from fedsampling.runs import store
from fedsampling.runs.rows import digest, rows_of

SEEDS = (0, 1, 5)
JOB = "p/e/base/md/block-0"


def run_table(seed):
    at = np.arange(0, 40, 10)
    return pd.DataFrame({"at": at, "metric": "msd", "value": 1.0 / (1 + at) + seed})


class Runs:
    """A store with one job's runs, and the manifest that names them."""

    def __init__(self, root):
        self.store, self.out = root / "store", root / "summary.parquet"
        self.manifest = root / "base" / "md" / "block-0.json"
        self.manifest.parent.mkdir(parents=True)
        self.paths = {s: store.save(self.store, run_table(s), metadata(s)) for s in SEEDS}
        self.seeds = {path.stem.partition("-")[0]: seed for seed, path in self.paths.items()}
        runs = [
            {"hash": name, "seed": seed, "digest": digest(run_table(seed))}
            for name, seed in self.seeds.items()
        ]
        self.manifest.write_text(json.dumps({"job": JOB, "runs": runs}))

    def named(self):
        return joining.runs_of_manifest(self.manifest, JOB, self.seeds, [self.store])

    def summarise(self):
        facts = {"scale": "quick", "data": "embedded"}
        joining.write(self.named(), {"settings": {"rounds": 30}}, facts, self.out)
        return summaries.load(self.out)


def metadata(seed, **changes):
    return {
        "hash": f"{seed:020x}",
        "spec": {"seed": seed, "data": "generated", "settings": {}},
        "code": "c1",
        "inputs": {"file": "sha"},
        "unverified": False,
        "package": "0.1",
        "commit": None,
        "python": "3.11",
        "versions": {"numpy": "2"},
        "device": "cpu",
        "seconds": 1.5,
        "peak_mb": 100.0 + seed,
        "started": f"2026-01-0{seed + 1}T00:00:00Z",
        "finished": f"2026-01-0{seed + 1}T01:00:00Z",
    } | changes


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path)


class TestCurves:
    def test_curve_is_the_mean_over_seeds_with_its_interval(self, runs):
        curve = runs.summarise().curves.set_index("at")
        for at in (0, 10, 20, 30):
            expected = mean([1.0 / (1 + at) + seed for seed in SEEDS])
            result = curve.loc[at, ["mean", "low", "high", "n"]].to_numpy(float)
            low = max(expected.low, 0)  # no mean square is less
            assert result == pytest.approx([expected.value, low, expected.high, 3])

    def test_two_seeds_have_no_interval_either_but_their_range(self, runs):
        rows = runs.summarise().rows
        curve = Summary(rows[rows["seed"] < 5], {}, {}).curves.set_index("at")
        assert curve[["low", "high"]].isna().all(axis=None)
        assert list(curve.loc[0, ["least", "most"]]) == [1.0, 2.0]

    def test_an_interval_ends_where_its_metric_does(self):
        values = {"accuracy": [0.9, 0.99, 1.0], "loss": [0.0, 0.1, 2.0], "msd": [0.0, 0.1, 2.0]}
        rows = [("base", "md", m, 0, s, x) for m, xs in values.items() for s, x in enumerate(xs)]
        names = ["case", "sampler", "metric", "at", "seed", "value"]
        curves = Summary(pd.DataFrame(rows, columns=names), {}, {}).curves.set_index("metric")
        assert curves.loc["accuracy", "high"] == 1
        assert curves.loc["loss", "low"] == curves.loc["msd", "low"] == 0

    @pytest.mark.filterwarnings("ignore:invalid value encountered in subtract")
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_diverged_run_is_not_dropped(self, runs, value):
        rows = runs.summarise().rows
        rows.loc[(rows["seed"] == 1) & (rows["at"] >= 20), "value"] = value
        summary = Summary(rows, {}, {})
        curve = summary.curves.set_index("at")
        assert np.isfinite(curve.loc[[0, 10], "mean"]).all()
        assert not np.isfinite(curve.loc[[20, 30], "mean"]).any()
        assert (curve["n"] == 3).all()
        later = summary.per_seed("md", "msd", since=10)
        assert list(np.isfinite(later)) == [True, False, True]

    def test_per_seed_averages_from_a_round_on(self, runs):
        result = runs.summarise().per_seed("md", "msd", since=20)
        assert list(result.index) == list(SEEDS)
        assert result.to_numpy() == pytest.approx([(1 / 21 + 1 / 31) / 2 + seed for seed in SEEDS])

    def test_what_was_not_measured_is_an_error(self, runs):
        with pytest.raises(KeyError, match="no loss of md in case base"):
            runs.summarise().per_seed("md", "loss")


class TestProvenance:
    def test_runs_are_counted_and_summed_and_every_value_is_kept(self, runs):
        changes = {"code": "c2", "device": "gpu", "unverified": True}
        store.save(runs.store, run_table(1), metadata(1, **changes))
        expected = {
            **{"runs": 3, "seeds": [0, 1, 5], "seconds": 4.5, "peak_mb": 105.0, "commit": []},
            **{"started": "2026-01-01T00:00:00Z", "finished": "2026-01-06T01:00:00Z"},
            **{"scale": "quick", "data": "embedded", "run_data": ["generated"]},
            **{"code": ["c1", "c2"], "device": ["cpu", "gpu"], "unverified": True},
        }
        assert expected.items() <= runs.summarise().provenance.items()

    def test_selections_become_a_file_of_their_own(self, runs, tmp_path):
        names = ["selected_client", "selected_weight", "selected_reported", "selected_seconds"]
        values = [[4, 2], [0.5, 0.0], [1, 0], [7.5, 30.0]]
        rows = {"at": [1, 1] * 4, "metric": np.repeat(names, 2), "value": np.ravel(values)}
        table = pd.concat([run_table(0), pd.DataFrame(rows)], ignore_index=True)
        path, facts = tmp_path / "selections.csv", {"scale": "quick"}
        result = store.Result(rows_of(table), metadata(0))
        joining.write([("base", "md", result)], {}, facts, runs.out, path)
        assert path.read_text().splitlines() == [
            "case,sampler,seed,round,client,weight,reported,seconds",
            "base,md,0,1,4,0.5,True,7.5",
            "base,md,0,1,2,0.0,False,30.0",
        ]
        with_others = summaries.load(runs.out)
        joining.write(
            [("base", "md", store.Result(rows_of(run_table(0)), metadata(0)))], {}, facts, runs.out
        )
        pd.testing.assert_frame_equal(with_others.rows, summaries.load(runs.out).rows)

    def test_a_case_knows_its_own_runs_alone(self, runs):
        store.save(runs.store, run_table(5), metadata(5, unverified=True))
        result = runs.named()
        result += [("vouched", sampler, run) for _, sampler, run in result[:1]]
        settings = {"cases": {"base": {}, "vouched": {}}}
        joining.write(result, settings, {"scale": "paper"}, runs.out)
        summary = summaries.load(runs.out)
        assert summary.provenance["unverified"] is True
        vouched = summary.only(["vouched"])
        assert set(vouched.rows["case"]) == set(vouched.settings["cases"]) == {"vouched"}
        expected = {"runs": 1, "seeds": [0], "unverified": False, "scale": "paper"}
        assert expected.items() <= vouched.provenance.items()
        assert summary.only(["no such case"]) is summary is summary.only([])

    @pytest.mark.parametrize(
        ("delays", "data", "unverified"),
        [
            ("nycmesh", "official", True),
            ("synthetic", "official", False),
            ("nycmesh", "embedded", False),
        ],
    )
    def test_delays_of_files_that_nobody_vouches_for_are_unverified(self, delays, data, unverified):
        settings = {"kind": "network", "delays": {"name": delays}}
        run = metadata(0, spec={"settings": settings, "data": data, "seed": 0})
        assert joining.provenance([run])["unverified"] is unverified


class TestDamage:
    def failing(self, runs):
        line = line_of(runs.summarise)
        assert not runs.out.exists()
        assert not runs.manifest.exists()  # so that the job is run again
        return line

    @pytest.mark.parametrize(
        ("damage", "fault"),
        [
            ("removed", "missing"),
            ("truncated", "corrupt"),
            ("swapped", "different from the manifest"),
        ],
    )
    def test_a_run_that_is_not_the_manifests_is_one_line(self, runs, damage, fault):
        content = runs.paths[1].read_bytes()
        runs.paths[1].unlink()
        if damage == "truncated":
            runs.paths[1].write_bytes(content[:-20])
        elif damage == "swapped":
            store.save(runs.store, run_table(5), metadata(1))
        assert self.failing(runs) == (
            f"block-0 of base/md: run {1:020x} (seed 1) is {fault}; "
            "run the same command to recompute it"
        )

    @pytest.mark.parametrize(
        "content", [b"", b"[]", b"\xff", b"[" * 99_999, {"runs": [{}]}, {"job": ""}]
    )
    def test_a_damaged_manifest_is_one_line(self, runs, content):
        if isinstance(content, dict):
            content = json.dumps(json.loads(runs.manifest.read_text()) | content).encode()
        runs.manifest.write_bytes(content)
        line = self.failing(runs)
        assert line.startswith(f"{runs.manifest}: ")
        assert line.endswith("run the same command to rebuild it")

    @pytest.mark.parametrize("indices", [[0], [2, 1, 0], [0, 0, 1, 2]])
    def test_a_manifest_with_other_runs_than_its_jobs_is_rejected(self, runs, indices):
        content = json.loads(runs.manifest.read_text())
        content["runs"] = np.array(content["runs"])[np.r_[indices]].tolist()
        runs.manifest.write_text(json.dumps(content))
        assert self.failing(runs) == (
            f"{runs.manifest}: must list exactly the 3 runs of {JOB}; "
            "run the same command to rebuild it"
        )

    @pytest.mark.parametrize("changed", ["value", "seed", "at", "sampler", "metadata"])
    def test_a_summary_with_another_row_or_other_notes_is_rejected(self, runs, changed):
        runs.summarise()
        table = pq.read_table(runs.out)
        notes, rows = table.schema.metadata, table.to_pandas().astype({"sampler": str})
        if changed == "metadata":
            key, scale = summaries.SUMMARY.encode(), b'"scale": "quick"'
            assert scale in notes[key]
            notes = {**notes, key: notes[key].replace(scale, b'"scale": "paper"')}
        else:
            rows.loc[3, changed] = "fedavg" if changed == "sampler" else 77
        table = pa.Table.from_pandas(rows, preserve_index=False)
        pq.write_table(table.replace_schema_metadata(notes), runs.out)
        with pytest.raises(InputError, match="corrupt; delete it and rerun the command"):
            summaries.load(runs.out)


def test_the_first_seeds_are_kept_with_their_settings():
    rows = {"case": "base", "sampler": "md", "metric": "msd", "at": 0, "value": 1.0}
    summary = Summary(pd.DataFrame({**rows, "seed": [5, 6, 7]}), {"seeds": [5, 6, 7]}, {})
    part = summary.first_seeds(2)
    assert part.settings["seeds"] == sorted(part.rows["seed"]) == [5, 6]
    assert len(part.select("md", "msd", "base")) == 2
    assert summary.first_seeds(3) is summary
