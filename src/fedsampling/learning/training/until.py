"""The condition that ends a run before its last round: a target, or a duration."""

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive, PositiveFloat, Strict, hashed_if_set
from fedsampling.learning.training.history import JobHistory
from fedsampling.learning.training.loop import Moment


class Until(Strict):
    """Condition that ends a run before its last round: a target, or a duration."""

    metric: Literal["accuracy", "test_loss"] = "accuracy"
    target: PositiveFloat | None = Field(None, description="accuracy to reach, or loss to fall to")
    in_a_row: Positive = Field(3, description="measurements that meet the target")
    seconds: PositiveFloat | None = Field(None, description="that the clock passes")
    rounds: Positive | None = hashed_if_set(None, "rounds before which the clock ends no run")

    @model_validator(mode="after")
    def _check_effect(self) -> "Until":
        if self.target is None and self.seconds is None:
            raise ValueError("no effect without a condition; set target or seconds, or remove it")
        if self.rounds is not None and self.seconds is None:
            raise ValueError("rounds: no effect without seconds; set seconds, or remove rounds")
        return self

    def end(self, moment: Moment) -> bool:
        """End the runs that meet the condition, as a callback of the training loop."""
        moment.history.ended_at = self.ended_at(moment.history)
        return bool((moment.history.ended_at >= 0).all())

    def ended_at(self, history: JobHistory) -> Ints:
        """Return the round in which each run ended, shape (runs,); −1 if it continues.

        Raises
        ------
        InputError
            If the runs do not measure the target's metric.
        """
        if self.target is not None and self.metric not in {name for _, name, _ in history.measured}:
            raise InputError(
                f"until.metric: runs on these data do not measure {self.metric!r}; use data with "
                "test samples, and 'accuracy' for classification or 'test_loss' for regression"
            )
        ended_at = np.full(len(history.diverged_at), -1)
        in_a_row = np.zeros(len(ended_at), np.int64)  # measurements that meet the target
        spent = [(at, cost) for at, name, cost in history.charged if name == "seconds"]
        clocks = np.cumsum([np.zeros(len(ended_at)), *(cost for _, cost in spent)], axis=0)
        charged = np.array([at for at, _ in spent])
        values = {at: value for at, name, value in history.measured if name == self.metric}
        for at in sorted({at for at, _, _ in history.measured}):
            if self.target is not None:
                larger = self.metric == "accuracy"
                meets = values[at] >= self.target if larger else values[at] <= self.target
                in_a_row = np.where(meets, in_a_row + 1, 0)
            clock = clocks[np.searchsorted(charged, at, side="right")]
            late = (clock >= (self.seconds or np.inf)) & (at >= (self.rounds or 0))
            ended_at[(ended_at < 0) & ((in_a_row >= self.in_a_row) | late)] = at
        return ended_at
