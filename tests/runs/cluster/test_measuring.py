"""A measurement runs no more of a job than it takes to time it, and only once of those alike."""

import signal
import time
from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import Config
from fedsampling.runs.cluster import measuring
from fedsampling.workflow.plan import plan

PAPERS = Path(__file__).parents[3] / "papers"


@pytest.mark.parametrize(
    ("start", "step", "pieces"),
    [(0.0, 3.0, 2), (0.0, 2e-5, 9), (0.03, 0.01, 4)],
    ids=["slow", "fast", "with a start"],
)
def test_pieces_grow_until_they_can_be_timed(monkeypatch, start, step, pieces):
    settings = {"papers": ["harshvardhan2025latency"], "scale": "quick", "data": "embedded"}
    jobs = plan(settings, PAPERS).jobs.values()
    job = next(job for job in jobs if job.runs[0].settings["kind"] == "selection")
    lengths = []

    def piece(job, length, *where):
        lengths.append(length)
        return start + step * length

    monkeypatch.setattr(measuring, "_seconds", piece)
    result = measuring.measure(job, Path("nowhere"), Config())
    assert result.step == pytest.approx(step)
    assert result.fixed == pytest.approx(start, abs=1e-9)
    assert len(lengths) <= pieces


def test_a_measurement_that_takes_too_long_is_ended(monkeypatch):
    def busy(*_):
        while time.process_time() < ends:
            pass

    ends = time.process_time() + 30
    monkeypatch.setattr(measuring, "_measured", busy)
    monkeypatch.setattr(measuring, "MAX_MEASURE_SECONDS", 0.05)
    with pytest.raises(InputError, match="a step takes more than 0 s"):
        measuring.measure(None, Path("nowhere"), Config())
    assert time.process_time() < ends
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)  # nothing ends what follows


def test_jobs_that_differ_only_in_real_numbers_and_rounds_are_measured_once():
    settings = {"papers": ["fraboni2021clustered"], "scale": "quick", "data": "embedded"}
    jobs = plan(settings, PAPERS).jobs
    name = "fraboni2021clustered/{}/md/block-0".format
    assert measuring.timing_key(jobs[name("alpha/alpha-0.01")]) == measuring.timing_key(
        jobs[name("alpha/alpha-10")]
    )
    assert measuring.timing_key(jobs[name("work/steps-10")]) != measuring.timing_key(
        jobs[name("alpha/alpha-10")]
    )


@pytest.mark.parametrize(
    ("held", "data"), [(("ijcnn1.tr", "ijcnn1.val", "ijcnn1.t"), "official"), ((), "embedded")]
)
def test_files_in_the_mirror_are_available(tmp_path, held, data):
    settings = {"papers": ["rizk2022importance"], "scale": "quick"}
    jobs = plan(settings, PAPERS).jobs
    job = jobs["rizk2022importance/classification/base/fedavg/block-0"]
    for name in held:
        (tmp_path / name).touch()
    assert measuring.available_data(job, tmp_path / "cache", str(tmp_path)) == data
