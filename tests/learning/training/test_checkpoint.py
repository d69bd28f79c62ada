"""A job that is stopped and resumed gives the same bytes."""

import os
import random
import signal
import time

import numpy as np
import pytest
import torch
from tests.helpers.small_network import learner

from fedsampling.base.errors import InputError
from fedsampling.base.stopping import Stopped
from fedsampling.learning.training.checkpoint import Checkpoint, Snapshot
from fedsampling.learning.training.evaluation import evaluate
from fedsampling.learning.training.history import JobHistory
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import measuring, train
from fedsampling.learning.training.participation import Participation
from fedsampling.runs.rows import digest
from fedsampling.samplers.clustered import ClusteredSimilarity
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

SEEDS = np.array([3, 8])
ROUNDS = 120


def job(checkpoint, rounds=ROUNDS):
    """Train with every kind of state; return the digest of each run's table."""
    trainer = learner(
        LocalWork(batch=4, step=0.05, steps=3),
        participation=Participation(evenness=True, by_client=True),
        full_update=25,
    )
    setup = Setup(trainer.n_samples, trainer.p, 2, dimension=trainer.network.dimension)
    sampler = prepared(ClusteredSimilarity(m=2, duplicates="once"), setup)

    def by_client(moment):
        if moment.ending:
            moment.history.by_client = trainer.by_client_metrics(moment.round)

    callbacks = [measuring(3, lambda theta, _: evaluate(trainer, theta)), by_client]
    history = train(trainer, sampler, SEEDS, rounds, callbacks, checkpoint)
    return [digest(table) for table in history.tables("each")]


def progress():
    rows = [(0, "loss", np.array([0.1, np.nan])), (3, "loss", np.array([1 / 3, 2.0]))]
    state = {"theta": np.arange(6, dtype=np.float32).reshape(2, 3)}
    history = JobHistory(rows, rows[:1], np.array([-1, 2]))
    return Snapshot(4, history, state, {"known": np.array([True])})


@pytest.mark.parametrize("damage", ["other key", "no array", "another array", "no zip"])
def test_a_corrupt_or_foreign_checkpoint_is_ignored(tmp_path, capfd, damage):
    path = tmp_path / "job.npz"
    Checkpoint(path, "other" if damage == "other key" else "key").save(progress())
    with np.load(path) as file:
        arrays = dict(file)
    if damage == "no array":
        del arrays["learner/theta"]
        np.savez(path, **arrays)
    elif damage == "another array":
        np.savez(path, **{**arrays, "learner/theta": arrays["learner/theta"][::-1]})
    elif damage == "no zip":
        np.save(path.open("wb"), arrays["learner/theta"])
    assert Checkpoint(path, "key").load() is None
    (output,) = capfd.readouterr().err.splitlines()
    assert output == f"{path}: corrupt checkpoint; the job starts from the beginning"


def test_a_job_without_a_checkpoint_starts_silently(tmp_path, capfd):
    assert Checkpoint(tmp_path / "job.npz", "key").load() is None
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("error", [NotImplementedError, SyntaxError, MemoryError])
def test_no_error_of_a_decoder_stops_a_job_except_lack_of_memory(tmp_path, monkeypatch, error):
    checkpoint = Checkpoint(tmp_path / "job.npz", "key")
    checkpoint.save(progress())

    def fail(*_, **__):
        raise error("compression method")

    monkeypatch.setattr(np, "load", fail)
    if error is not MemoryError:
        assert checkpoint.load() is None
        return
    with pytest.raises(InputError, match="cannot be read \\(not enough memory"):
        checkpoint.load()
    assert checkpoint.path.is_file()


def test_a_job_that_must_stop_saves_and_can_resume(tmp_path):
    path, answers = tmp_path / "job.npz", iter([False] * 40 + [True] * 2)
    with pytest.raises(Stopped):
        job(Checkpoint(path, "key", seconds=1e9, stop=lambda: next(answers)))
    saved = Checkpoint(path, "key").load()
    assert 0 < saved.round < ROUNDS
    assert job(Checkpoint(path, "key", seconds=1e9)) == job(Checkpoint(None))


@pytest.fixture
def one_thread():
    """Disable OpenMP's threads: a forked process does not have them and would wait for them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_job_that_is_killed_at_any_moment_resumes_bit_for_bit(tmp_path):
    """SIGKILL at twelve random moments; each process resumes from the last checkpoint."""
    path, out = tmp_path / "job.npz", tmp_path / "digests"
    clock = time.monotonic()
    undisturbed = job(Checkpoint(None))
    length = time.monotonic() - clock
    moments, killed, reached = random.Random(0), 0, set()
    while not out.exists():
        child = os.fork()
        if child == 0:
            result = job(Checkpoint(path, "key", seconds=0))
            out.write_text("\n".join(result))
            os._exit(0)
        if killed < 12:
            time.sleep(moments.uniform(0.02, 0.25) * length)
            os.kill(child, signal.SIGKILL)
            killed += 1
        os.waitpid(child, 0)
        if (saved := Checkpoint(path, "key").load()) is not None:
            reached.add(saved.round)
        if killed < 12 and out.exists():  # it finished early: kill another job
            assert out.read_text().split() == undisturbed
            out.unlink()
            path.unlink()
    assert killed == 12
    assert len(reached) > 3
    assert out.read_text().split() == undisturbed
    Checkpoint(path, "key").remove()
    assert list(tmp_path.iterdir()) == [out]
