"""Corrupt files are rejected, or have the content that was written."""

import errno
import json
import os
import random
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.shared import ROOT

from fedsampling.base.errors import CorruptError, InputError
from fedsampling.base.files import read_record, write_record
from fedsampling.evidence import joining, summaries
from fedsampling.learning.training.checkpoint import Checkpoint, Snapshot
from fedsampling.learning.training.history import JobHistory
from fedsampling.runs import store
from fedsampling.runs.rows import digest

PUBLISHED = ROOT / "published_runs" / "chen2022optimal" / "dsgd_near.parquet"
JOB = "chen2022optimal/dsgd_near/base/full/block-0"
FEW, MANY = 30, 834  # mutations of each of six kinds of files: MANY are 5,000 in total


def run_file(path):
    run = next(iter(store.load_together(PUBLISHED).values()))
    store.save(path.parent, run.table, run.metadata).rename(path)
    return lambda file: _content(store.load(file))


def published_file(path):
    path.write_bytes(PUBLISHED.read_bytes())

    def read(file):
        store._load_file.cache_clear()
        return {name: _content(run) for name, run in store.load_together(file).items()}

    return read


def summary_file(path):
    runs = [("base", "full", run) for run in store.load_together(PUBLISHED).values()]
    settings = {"settings": {"rounds": 30}, "cases": {"base": {}}}
    joining.write(runs, settings, {"scale": "paper", "data": "official"}, path)

    def read(file):
        summary = summaries.load(file)
        return summaries.digest(summary.rows), asdict(summary) | {"rows": None, "categories": None}

    return read


def manifest_file(path):
    runs = store.load_together(PUBLISHED).values()
    for run in runs:
        store.save(path.parent, run.table, run.metadata)
    keys = ("hash", "digest")
    listed = [
        {key: run.metadata[key] for key in keys} | {"seed": run.metadata["spec"]["seed"]}
        for run in runs
    ]
    path.write_text(json.dumps({"job": JOB, "runs": listed}, indent=2))
    seeds = {run["hash"]: run["seed"] for run in listed}

    def read(file):
        return [
            _content(run) for _, _, run in joining.runs_of_manifest(file, JOB, seeds, [path.parent])
        ]

    return read


def checkpoint_file(path):
    rows = [(at, name, np.array([0.1 * at, np.nan])) for at in range(9) for name in ("a", "b")]
    learner = {"theta": np.linspace(0, 1, 60).reshape(2, 30), "seen": np.arange(4) > 1}
    history = JobHistory(rows, rows[:4], np.array([-1, 2]))
    progress = Snapshot(9, history, learner, {"known": np.arange(5)})
    Checkpoint(path, "key").save(progress)

    def read(file):
        loaded = Checkpoint(file, "key").load()
        if loaded is None:
            raise InputError(f"{file}: the job starts from the beginning")
        history = loaded.history
        state = {**loaded.learner, **loaded.sampler, "diverged_at": history.diverged_at}
        rows = history.measured + history.charged
        listed = [(at, name, row.tobytes()) for at, name, row in rows]
        return loaded.round, listed, {name: values.tobytes() for name, values in state.items()}

    return read


def record_file(path):
    claims = [{"id": f"c{n}", "ours": f"{n / 7:.3f} dB", "seeds": n} for n in range(9)]
    write_record(path, {"paper": "chen2022optimal", "claims": claims})
    return read_record


KINDS = [run_file, published_file, summary_file, manifest_file, checkpoint_file, record_file]


def _content(run):
    return digest(run.table), dict(run.metadata)


def mutated(content, chance):
    """Damage a file as disks, networks and people do."""
    damaged = bytearray(content)
    at = chance.randrange(len(damaged))
    length = min(chance.choice((1, 2, 8, 64, 512)), len(damaged) - at)
    piece = slice(at, at + length)
    match chance.choice(("bit", "bit", "bit", "digit", "noise", "zeros", "lost", "doubled", "end")):
        case "bit":
            damaged[at] ^= 1 << chance.randrange(8)
        case "digit":  # as by an editor: still text where text was
            digits = [place for place, byte in enumerate(damaged) if chr(byte).isdecimal()]
            damaged[chance.choice(digits)] = ord(str(chance.randrange(10)))
        case "noise":
            damaged[piece] = chance.randbytes(length)
        case "zeros":
            damaged[piece] = bytes(length)
        case "lost":
            del damaged[piece]
        case "doubled":
            damaged[at:at] = damaged[piece]
        case "end":
            del damaged[at:]
    return bytes(damaged)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_cannot_be_read_is_refused_and_nothing_is_lost(
    tmp_path, monkeypatch, kind, number
):
    path = tmp_path / "file.parquet"
    read = kind(path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def fail(self, *arguments, **options):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", fail)
        with pytest.raises(InputError, match=r"cannot be read \(.*nothing was changed") as caught:
            read(path)
    assert not isinstance(caught.value, CorruptError)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_corrupt_file_is_accepted_with_other_content(tmp_path, kind, count):
    path = tmp_path / "file.parquet"
    read = kind(path)
    intact, chance = path.read_bytes(), random.Random(28)
    expected = read(path)
    rejections = 0
    for _ in range(count):
        path.write_bytes(mutated(intact, chance))
        try:
            assert read(path) == expected
        except InputError:
            rejections += 1
    assert rejections > count / 4  # most mutations reach the content
