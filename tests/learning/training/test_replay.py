"""Replayed local steps agree bit for bit with steps that run one by one."""

from dataclasses import replace

import pytest
import torch
from small_network import record_calls

from fedsampling.learning.training.network.gpu import cuda_graph
from fedsampling.learning.training.network.replay import MAX_GRAPHS, Replays, Stretch, run_steps

STEPS, SLOTS, D, BATCH = 5, 3, 4, 2


def stretch(seed, steps=STEPS, first=7, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    stretch = Stretch(
        w=torch.randn(SLOTS, D, generator=generator),
        start=torch.randn(SLOTS, D, generator=generator),
        velocity=torch.randn(SLOTS, D, generator=generator),
        step=torch.rand(SLOTS, 1, generator=generator),
        keys=torch.randint(100, (SLOTS,), generator=generator),
        rows=torch.randint(100, (steps, SLOTS, BATCH), generator=generator),
        weight=torch.rand(steps, SLOTS, BATCH, generator=generator),
        first=torch.tensor(first),
        losses=torch.zeros(steps, SLOTS),
    )
    return Stretch(**{name: array.to(device) for name, array in vars(stretch).items()})


def take(w, start, velocity, step, keys, rows, weight, number):
    """A step that depends on all its arguments and trains w in place."""
    pull = (rows * weight).sum(1, keepdim=True) + keys[:, None] * number
    velocity.mul_(0.5).add_(torch.sin(pull + start))
    w.mul_(0.9).add_(step * velocity)
    return w.sum(1) + number


@pytest.fixture(params=["cpu", "cuda"])
def replays(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return Replays(take, cuda_graph if request.param == "cuda" else record_calls), request.param


def test_replayed_steps_agree_with_single_steps(replays):
    replayer, device = replays
    for seed in range(4):
        first = 3 * seed
        walked, replayed = (stretch(seed, first=first, device=device) for _ in range(2))
        run_steps(take, walked)
        replayer.run(replayed)
        assert torch.equal(walked.w, replayed.w)
        assert torch.equal(walked.velocity, replayed.velocity)
        assert torch.equal(walked.losses, replayed.losses)
    assert len(replayer.graphs) == 1


def test_views_of_larger_arrays_are_trained_in_place(replays):
    replayer, device = replays
    for seed in range(3):
        walked = stretch(seed, device=device)
        larger, losses = torch.zeros(SLOTS + 2, D), torch.zeros(STEPS + 1, SLOTS)
        larger, losses = larger.to(device), losses.to(device)
        larger[:SLOTS] = walked.w
        velocity = walked.velocity.clone()
        replayer.run(replace(walked, w=larger[:SLOTS], velocity=velocity, losses=losses[1:]))
        run_steps(take, walked)
        assert torch.equal(larger[:SLOTS], walked.w)
        assert torch.equal(losses[1:], walked.losses)
        assert not larger[SLOTS:].any()
        assert not losses[0].any()


def test_only_recurring_shapes_are_captured_up_to_a_limit():
    replayer = Replays(take, record_calls)
    for steps in range(1, MAX_GRAPHS + 6):
        replayer.run(stretch(0, steps))
    assert not replayer.graphs
    for steps in range(1, MAX_GRAPHS + 6):
        replayed, walked = stretch(1, steps), stretch(1, steps)
        replayer.run(replayed)
        run_steps(take, walked)
        assert torch.equal(walked.w, replayed.w)
    assert len(replayer.graphs) == MAX_GRAPHS


def test_steps_that_cannot_be_captured_run_one_by_one_with_one_warning():
    attempts = []

    def refuse(call, rewind):
        rewind()
        call()  # as warming up does
        attempts.append(call)
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    replayer = Replays(take, refuse)
    stretches = [stretch(seed) for seed in range(4)]
    with pytest.warns(RuntimeWarning, match=r"captured: operation .* capturing$") as warned:  # noqa: PT031
        for attempt in stretches:
            replayer.run(attempt)
    for seed, tried in enumerate(stretches):
        walked = stretch(seed)
        run_steps(take, walked)
        assert torch.equal(walked.w, tried.w)
        assert torch.equal(walked.losses, tried.losses)
    assert (len(warned), len(attempts)) == (1, 1)
