"""All samplers by information, cost and speed-up, and the rule for advice."""

import numpy as np
import pandas as pd
import pytest
from tests.helpers.fake_results import add_crossmatrix
from tests.report.test_pages import Page

from fedsampling.base.errors import InputError
from fedsampling.report.which_sampler import chooser
from fedsampling.report.which_sampler.advice import NOTHING_BETTER, Situation
from fedsampling.report.which_sampler.cells import advise
from fedsampling.report.which_sampler.reading import read
from fedsampling.samplers.protocol.base import Scheme


@pytest.fixture
def folder(results):
    add_crossmatrix(results.root)
    return results.root / "results" / "artefacts" / "crossmatrix"


def speed_ups(**by_sampler):
    """Speed-ups on the families A, B, …, one dataset and five runs each."""
    families = max([4, *map(len, by_sampler.values())])
    rows = [
        {"scheme": name, "family": family, "set": family.lower(), "speed_up": value}
        for name, values in {"md": [1.0] * families, **by_sampler}.items()
        for family, value in zip("ABCDEFGH", values, strict=False)
    ]
    fixed = {"unequal": False, "skewed": True, "away": False, "worlds": 5, "reached": 5, "runs": 5}
    return pd.DataFrame(rows).assign(**fixed)


def advised(table, situation=None):
    return advise(table, {*table["scheme"]}, situation or Situation(), "rounds", table)


@pytest.mark.parametrize(
    ("again", "recommended", "words"),
    [
        ([1.5, 1.4, 1.5, 1.4], 1, ". Fresh worlds: "),
        ([3.0, 1.0, 1.0, 1.0], 0, ". Fresh worlds: "),
        ([1.5, 1.4, 1.5], 0, ". Fresh worlds (3 families): "),
        (None, 0, ". Not run in fresh worlds."),
    ],
)
def test_a_sampler_not_confirmed_in_fresh_worlds_is_a_candidate(again, recommended, words):
    table, fresh = (
        speed_ups(fast=[1.5, 1.6, 1.4, 1.5]),
        speed_ups(**{"fast": again} if again else {}),
    )
    advice = advise(table, ["fast"], Situation(), "rounds", fresh)
    assert len(advice.recommended) == recommended
    (candidate,) = (*advice.recommended, *advice.others)
    assert words in candidate.in_words("rounds")


def test_a_gain_that_rounds_to_zero_has_no_sign():
    table = speed_ups(even=[1.002, 1.003, 1.002, 1.003])
    (candidate,) = advise(table, ["even"], Situation(), "rounds", table).recommended
    assert "(0 to 0 %)" in candidate.in_words("rounds")


def named_new(table):
    """Give the families names that no other table has."""
    return table.assign(family="new " + table["family"].astype(str))


def test_families_of_the_situation_are_not_new():
    table, again = speed_ups(fast=[1.5, 1.6, 1.4, 1.5]), speed_ups(fast=[0.5, 0.6, 0.5])
    (candidate,) = advise(table, ["fast"], Situation(), "rounds", table, again).recommended
    assert candidate.tested is None


@pytest.mark.parametrize(
    ("test", "recommended"), [([1.5, 1.4, 1.5], 1), ([3.0, 1.0, 1.0], 0), (None, 1)]
)
def test_a_test_on_new_families_can_only_remove_a_recommendation(test, recommended):
    table = speed_ups(fast=[1.5, 1.6, 1.4, 1.5])
    new = named_new(speed_ups(fast=test) if test else speed_ups())
    advice = advise(table, ["fast"], Situation(), "rounds", table, new)
    assert len(advice.recommended) == recommended
    (candidate,) = (*advice.recommended, *advice.others)
    assert (" 3 new families: " in candidate.in_words("rounds")) == bool(test)
    slow = named_new(speed_ups(fast=[0.5, 0.6, 0.5]))  # with delays that vary: decides nothing
    advice = advise(table, ["fast"], Situation(), "seconds", table, new, slow)
    assert len(advice.recommended) == recommended
    (candidate,) = (*advice.recommended, *advice.others)
    assert "New families, delays vary: 47 % slower" in candidate.in_words("seconds")
    elsewhere = Situation(skewed=False)  # the test does not belong to this situation
    others = table.assign(skewed=False)
    assert advise(others, ["fast"], elsewhere, "rounds", others, new).recommended


def test_a_sampler_is_recommended_if_reliably_faster_on_three_families():
    table = speed_ups(fast=[1.5, 1.6, 1.4, 1.5], lucky=[3.0, 1.0, 1.0, 1.0])
    result = advised(table)
    assert [each.sampler for each in result.recommended] == ["fast"]
    assert [each.sampler for each in result.others] == ["lucky"]  # its interval includes 1
    logs = np.log([1.5, 1.6, 1.4, 1.5])
    low = np.exp(logs.mean() - 3.182446 * logs.std(ddof=1) / 2)  # Student's factor, 3 degrees
    assert result.recommended[0].speed_up.low == pytest.approx(low, rel=1e-5)
    half = 4.176535 * logs.std(ddof=1) / 2  # the factor for two samplers: 0.9875 instead of 0.975
    low, high = np.exp(logs.mean() - half), np.exp(logs.mean() + half)
    assert result.recommended[0].corrected(2) == pytest.approx((low, high), rel=1e-5)
    assert result.answer()[0].startswith("Use fast (")
    assert result.answer(candidates=1)[2] == (
        "Corrected for the choice among 2 samplers, the speed-up's interval is above 1: "
        f"[{low:.2f}, {high:.2f}]."
    )


def test_candidates_are_described_in_words():
    table = speed_ups(fast=[1.1, 1.2, 0.9, 1.0])
    (candidate,) = advised(table).others
    assert candidate.in_words("rounds").startswith(
        "4 % faster on average (−14 to +27 %), at worst "
    )
    assert "10 % slower on " in candidate.in_words("rounds")
    assert "11 % dearer on " in candidate.in_words("bits")


FAST = speed_ups(fast=[1.5, 1.5, 1.5, 1.5])
SPOILED = {
    "two families": speed_ups(fast=[1.5, 1.5]),
    "a missed target": FAST.assign(reached=FAST["reached"].where(FAST["set"] != "c", 4)),
    "a slow family": speed_ups(fast=[*7 * [1.5], 0.89]),  # though the interval is above 1
    "no such dataset": FAST.assign(away=True),
}


@pytest.mark.parametrize("table", SPOILED.values(), ids=SPOILED)
def test_otherwise_the_advice_is_md_sampling(table):
    result = advised(table)
    assert result.sampler == "md"
    assert result.answer()[0].startswith(NOTHING_BETTER)


def test_datasets_of_a_family_count_once():
    table = speed_ups(fast=[1.5, 1.5, 1.5])
    again = pd.concat([table, *(table[table["family"] == "A"].assign(set=f"a{k}") for k in "23")])
    assert advised(again).recommended[0].speed_up.value == pytest.approx(1.5)
    assert (advised(again).families, advised(again).datasets) == (4, 6)


def test_regret_is_that_of_the_rule_learned_without_the_family():
    table = speed_ups(fast=[1.5, 1.5, 1.5, 1.5], best_once=[3.0, 1.0, 1.0, 1.0])
    regret = advised(table).regret
    assert regret["md"] == pytest.approx(((3.0 + 3 * 1.5) / 4, 3.0))
    assert regret["advice"] == pytest.approx(((2.0 + 3) / 4, 2.0))  # fast is advised everywhere
    # Without the fresh run on D, the sampler is confirmed, so it is advised on D only: regret 1.
    table, fresh = speed_ups(fast=[1.5, 1.6, 1.4, 1.5]), speed_ups(fast=[1.5, 1.4, 1.5, 0.1])
    advice = advise(table, ["fast"], Situation(), "rounds", fresh)
    assert not advice.recommended
    assert advice.regret["advice"] == (pytest.approx((1.5 + 1.6 + 1.4 + 1) / 4), 1.6)


def test_every_scheme_has_a_row_and_the_first_in_rank_is_first(folder):
    comparison = read(folder)
    names = [row.name for row in comparison.rows]
    assert names[:3] == ["tifl", "md", "newest-m-5"]
    assert set(names) == {*Scheme.members(), "newest-m-5"}
    rows = {row.name: row for row in comparison.rows}
    assert (rows["tifl"].needs, rows["md"].needs) == (("delays",), ("nothing",))
    assert rows["target"].speed_ups["rounds"].missed == "67 % of runs missed"
    assert rows["md"].speed_ups["rounds"].text == "1 (reference)"
    assert comparison.better_than_md(rows["tifl"]) == ["in rounds"]
    printed = [
        *chooser.comparison_lines(comparison),
        *chooser.advice_lines({"rounds": comparison}, Situation()),
    ]
    assert printed[0].split() == ["sampler", "needs", "rounds", "bits"]
    assert any("1.50 [1.20, 1.80]" in line for line in printed)
    assert max(map(len, printed)) <= chooser.WIDTH


def test_needs_that_depend_on_settings_are_those_of_the_runs(folder):
    def needs():
        return {row.name: row.needs for row in read(folder).rows}["flanp"]

    assert needs() == ("depends on settings",)
    with (folder / "bench_ranks" / "bench_ranks.csv").open("a") as ranks:
        ranks.write("rounds,flanp,1.0,1.0,1.0,4,3,9,9,delays\n")
    assert needs() == ("delays",)


def test_what_is_missing_is_named_with_what_makes_it(tmp_path):
    with pytest.raises(InputError, match=r"ranks\.csv: missing; run 'snakemake"):
        read(tmp_path)
    (tmp_path / "bench_ranks").mkdir()
    (tmp_path / "bench_ranks" / "bench_ranks.csv").write_text("measure,scheme\n")
    with pytest.raises(InputError, match=r"ranks\.csv: has no column 'speed_up' "):
        read(tmp_path)
    with pytest.raises(InputError, match="--by second: unknown measure; did you mean 'seconds'"):
        read(tmp_path, "second")


def test_the_chooser_gives_the_rules_advice_in_every_situation(folder):
    lookup = chooser.lookup_table({"rounds": read(folder)})
    situations = len(list(chooser.all_answers())) / 3  # of three costs, one was drawn
    assert len(lookup["picks"]) == situations
    usual = {question.key: next(iter(question.answers)) for question in chooser.QUESTIONS}

    def first_line(**answers):
        return lookup["texts"][lookup["picks"][" ".join({**usual, **answers}.values())]][0]

    assert first_line(delays="yes").startswith("Use TiFL (3 datasets of 3 families, 5 worlds)")
    assert first_line().startswith(NOTHING_BETTER)  # TiFL needs the delays
    assert first_line(delays="yes", unbiased="yes").startswith(NOTHING_BETTER)
    assert first_line(delays="yes", unequal="yes").endswith("(no dataset has these answers).")


def test_the_page_can_be_filtered_and_the_home_page_follows_the_same_rule(report):
    page = Page(report / "schemes.html")
    (item,) = [a for _, a in page.tags if "data-item" in a and a["id"] == "tifl"]
    filtered = [item[f"data-{name}"] for name in ("observes", "helps", "unbiased")]
    assert filtered == ["delays", "in rounds", "sometimes"]
    assert page.of_class("badge") == page.of_class("notice") == 1
    home = (report / "index.html").read_text()
    assert 'href="schemes.html#tifl"' in home
    assert "on datasets with similar sizes and skewed labels: TiFL" in " ".join(home.split())


def test_the_page_begins_with_the_users_samplers(results, folder, monkeypatch):
    assert 'id="yours"' not in (results.build() / "schemes.html").read_text()
    monkeypatch.setattr(Scheme.member("tifl"), "__module__", "schemes_of_mine")
    comparison = read(folder)
    (mine,) = comparison.by_users
    assert mine.name == "tifl"
    page = (results.build() / "schemes.html").read_text()
    assert page.index('id="yours"') < page.index('id="recommendation"')
