"""Samplers in both forms, with a statement in one of their methods; and a short training."""

import itertools
import linecache
from textwrap import indent

import fedsampling as fs

MD = {"name": "md", "m": 3}
SHORT = {"model": "softmax", "steps": 1, "batch": 2, "step": 0.1, "rounds": 3, "seeds": 2}
WORK = SHORT | {"delays": "synthetic"}
HEAD = """
import random, numpy as np, torch, fedsampling as fs
from dataclasses import dataclass
from typing import ClassVar
from numpy.random import default_rng
COUNT, LOG, START, GENERATOR, NAN = 0, [], np.zeros(8), np.random.default_rng(0), np.nan
def bump():
    global COUNT
    COUNT += 1
@dataclass
class State:
    total: np.ndarray
    shared: np.ndarray
    p: np.ndarray
    sums: np.ndarray
class Hostile(fs.{base}, name="{name}"):
    m: int = 3
    seen: ClassVar[list] = []
    needs = {{"losses", "gradients", "delays", "updates", "update_norms", "work_losses"}}
    unbiased = False
"""
ONE_RUN = (
    HEAD.replace("{base}", "Sampler")
    + """
    def prepare(self, setup):
        self.total, self.shared, self.p = np.zeros(len(setup.p)), START, setup.p
{prepare}
    def select(self, view, rng):
        score = view.p * view.losses * view.n_samples + view.gradients.sum(1) ** 2 + self.total
        clients = np.argsort(-score / view.delays[view.offered])[: self.m]
        self.kept = clients
{select}
        return clients
    def saw_updates(self, clients, updates):
        self.total[clients] += np.abs(updates).sum(1)
{saw_updates}
    def weigh(self, clients, view, rng):
        omega = view.p[clients] * view.update_norms + view.work_losses
        omega = omega / omega.sum()
{weigh}
        return omega
    def measured(self):
{measured}
        return {{"total": self.total.sum()}}
"""
)
STACKED = (
    HEAD.replace("{base}", "Scheme")
    + """
    def initial_state(self, setup):
        state = State(np.zeros((setup.runs, len(setup.p))), START, setup.p, np.zeros(setup.runs))
{prepare}
        return state
    def select(self, state, view, rng):
        seen = view.observed
        score = view.p * seen["losses"] * view.n_samples + seen["gradients"].sum(2) ** 2
        score = score + state.total
        clients = np.argsort(-score / seen["delays"][view.offered], axis=1)[:, : self.m]
        slots = fs.Slots.stack(clients)
{select}
        return slots
    def weigh(self, state, slots, view, rng):
        omega = view.p[slots.client] * view.observed["update_norms"] + view.observed["work_losses"]
        omega = omega / np.bincount(slots.run, omega)[slots.run]
{weigh}
        return omega
    def learn(self, state, slots, view):
        updates = view.observed["updates"]
        state.total[slots.run, slots.client] += np.abs(updates).sum(1)
        state.sums += state.total.sum(1)
{saw_updates}
        return state
    def addition(self, state, slots, omega):
{addition}
        return None
    def measured(self, state, slots, omega, view):
{measured}
        return {{"total": state.sums}}
"""
)
FORMS = {"one run": ONE_RUN, "stacked": STACKED}
numbers = itertools.count()


def sampler(form, method="", statement="pass", returned="clients", gradients=True):
    """Create the sampler of a form with a statement in one of its methods."""
    name = f"hostile_{next(numbers)}"
    methods = ("prepare", "select", "saw_updates", "weigh", "addition", "measured")
    bodies = {key: statement if key == method else "pass" for key in methods}
    text = FORMS[form].format(name=name, **{k: indent(v, " " * 8) for k, v in bodies.items()})
    text = text.replace("return clients", f"return {returned}", 1)
    if form == "stacked":  # which has no attributes; initial_state knows the shared array
        text = text.replace("self.shared", "state.shared")
    if not gradients:
        text = text.replace('"gradients", ', "").replace("view.gradients.sum(1) ** 2", "0")
    linecache.cache[f"{name}.py"] = len(text), None, text.splitlines(keepends=True), f"{name}.py"
    variables = {"__name__": name}
    exec(compile(text, f"{name}.py", "exec"), variables)
    return variables["Hostile"]()


def trained(data, own):
    return fs.train(data, own, **WORK)["value"].to_numpy()
