from datetime import timedelta
from types import SimpleNamespace

import pandas as pd
import pytest
from tests.shared import PAPERS

from fedsampling.evidence.provenance import RunEvidence
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.selecting import only
from fedsampling.workflow import confirm
from fedsampling.workflow.claim_context import Context
from fedsampling.workflow.confirm import OTHER_SEEDS, confirmed, drawn_by_seed

TRAINED = {"rounds": 10, "dataset": {"name": "mnist"}}
CONSTANT = {"name": "synthetic", "speed": [5.0, 5.0], "computation": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("settings", "worlds", "drawn"),
    [
        (TRAINED, False, "training"),
        (TRAINED, True, "clients, training"),
        (TRAINED | {"delays": {"name": "synthetic"}}, False, "training"),
        (TRAINED | {"delays": {"name": "synthetic"}}, True, "clients, delays, training"),
        (TRAINED | {"delays": CONSTANT}, True, "clients, training"),
        (TRAINED | {"availability": {"name": "markov"}}, True, "clients, availability, training"),
        ({"dataset": {"name": "shakespeare"}}, False, "clients"),
        ({"clients": 100, "draws": 3}, False, "problems"),
    ],
)
def test_what_a_fresh_seed_draws_follows_from_the_settings(settings, worlds, drawn):
    whole = {"settings": settings, "cases": {"base": None}, "worlds": worlds}
    varied = {key: value for key, value in settings.items() if key in ("delays", "availability")}
    general = {key: value for key, value in settings.items() if key not in varied}
    by_case = {"settings": general, "cases": {"plain": None, "varied": varied}, "worlds": worlds}
    assert ", ".join(drawn_by_seed(whole)) == ", ".join(drawn_by_seed(by_case)) == drawn


class TestFreshSeedsDoNotCount:
    PAPER = load_paper("chen2022optimal", PAPERS)
    RULE = PAPER.registered["c1"]

    def judged(self, rule, started=None):
        """Judge c1 as registered by `rule`, with runs that started at some time."""
        paper = self.PAPER.model_copy(update={"registered": {"c1": rule} if rule else {}})
        run = SimpleNamespace(provenance={"started": started})
        loaded = dict.fromkeys(paper.twins_of("c1").values(), run) if started else {}
        return confirmed("c1", Context(paper, paper, None, loaded, {}))

    def test_without_a_registration(self):
        fresh = self.judged(None)
        assert fresh.reason == "Its rule is not registered; 'fedsampling register' registers it."
        assert fresh.looks_left == ()

    def test_after_a_change_of_the_rule(self):
        fresh = self.judged(self.RULE.model_copy(update={"digest": "another"}))
        assert fresh.reason.startswith("Its rule was changed after its registration of 20")
        assert fresh.looks_left == ()

    def test_that_ran_before_the_registration(self):
        fresh = self.judged(self.RULE, (self.RULE.at - timedelta(seconds=1)).isoformat())
        assert fresh.reason.endswith(f"; {OTHER_SEEDS}.")
        assert fresh.looks_left == ()

    def test_while_no_look_is_finished(self):
        fresh = self.judged(self.RULE)
        assert fresh.reason.startswith("No look at fresh seeds is finished: ")
        assert fresh.looks_left == (5,)

    @pytest.mark.parametrize(("n", "looks_left"), [(4, (5,)), (5, ())])
    def test_with_too_few_seeds_or_others_than_declared(self, n, looks_left):
        first = 1000 if n < 5 else 0
        settings = {"seeds": [*range(first, first + n)]}
        run = SimpleNamespace(provenance={"started": "2099-01-01T00:00:00Z"}, settings=settings)
        paper = self.PAPER
        loaded = dict.fromkeys(paper.twins_of("c1").values(), run)
        fresh = confirmed("c1", Context(paper, paper, None, loaded, {}))
        assert fresh.looks_left == looks_left
        assert fresh.reason == (
            f"No look at fresh seeds is finished: {n} of 5 seeds."
            if looks_left
            else f"{next(iter(loaded))} has other seeds than those that its plan declares."
        )

    def test_that_a_report_leaves_out(self):
        paper = only(self.PAPER, self.PAPER.twins_of("c1").keys())
        project = SimpleNamespace(config=SimpleNamespace(scale="best"))
        fresh = confirmed("c1", Context(paper, self.PAPER, project, {}, {}))
        assert (fresh.reason, fresh.looks_left) == ("This report leaves out its fresh runs.", ())


def test_a_claim_is_judged_at_the_last_look_that_all_its_experiments_finished(monkeypatch):
    """Another claim has taken one of them to the second look."""
    paper = load_paper("fraboni2021clustered", PAPERS)
    seen = {}

    def rule(context, claim, summaries, outcome):
        seen.update({name: summary.rows["seed"].nunique() for name, summary in summaries.items()})
        return Finding("supports", "", "")

    def summary(seeds):
        rows = {"case": "base", "sampler": "md", "metric": "loss", "at": 1, "value": 1.0}
        settings = {"seeds": seeds, "cases": {"base": None}, "settings": {"rounds": 1}}
        known = {"seconds": 3600.0 * len(seeds), "started": "2099-01-01T00:00:00Z"}
        return Summary(pd.DataFrame({**rows, "seed": seeds}), settings, known, {"base": known})

    monkeypatch.setattr(Context, "apply_rule", rule)
    monkeypatch.setattr(confirm, "assess_runs", lambda *_: RunEvidence("paper", seeds=10))
    twins = paper.twins_of("c12").values()
    loaded = {
        twin: summary([*range(1000, 1029 if twin == "confirm_work" else 1010)]) for twin in twins
    }
    project = SimpleNamespace(facts={})
    fresh = confirmed("c12", Context(paper, paper, project, loaded, {}))
    assert set(seen.values()) == {10}
    assert (fresh.confirmation.look, fresh.confirmation.seeds, fresh.looks_left) == (1, 10, (29,))
    assert fresh.confirmation.hours == 10 * len(twins)
