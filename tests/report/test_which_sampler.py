"""All samplers by information, cost and speed-up: on a page and in a terminal."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest
from fake_results import add_crossmatrix
from test_pages import Page

from fedsampling.base.errors import InputError
from fedsampling.report.which_sampler import decision_map
from fedsampling.report.which_sampler.chooser import (
    QUESTIONS,
    faster_than_md,
    lookup_table,
    situations,
)
from fedsampling.report.which_sampler.comparison import Column, Comparison
from fedsampling.report.which_sampler.decision_map import Advice
from fedsampling.report.which_sampler.reading import read
from fedsampling.report.which_sampler.terminal import advice_lines, comparison_lines
from fedsampling.samplers.scheme import Scheme


@pytest.fixture
def folder(results):
    add_crossmatrix(results.root)
    return results.root / "results" / "artefacts" / "crossmatrix"


def test_every_scheme_has_a_row_and_the_first_in_rank_is_first(folder):
    comparison = read(folder)
    names = [row.name for row in comparison.rows]
    assert names[:3] == ["tifl", "md", "newest-m-5"]
    assert set(names) == {*Scheme.members(), "newest-m-5"}
    assert [column.title for column in comparison.overall] == ["rounds", "bits"]
    assert [(c.title, c.differ) for c in comparison.datasets] == [
        ("MNIST by digit", "labels"),
        ("My set", ""),
    ]


def test_a_row_says_what_is_observed_and_where_it_helps_beyond_doubt(folder):
    comparison = read(folder)
    rows = {row.name: row for row in comparison.rows}
    assert (rows["tifl"].needs, rows["md"].needs) == (("delays",), ("nothing",))
    assert [row.name for row, _ in comparison.unreliable()] == ["target"]
    missed = rows["target"].speed_ups["rounds"]
    assert (missed.text, missed.interval, missed.missed) == ("missed", "", "67 % of runs missed")
    assert rows["md"].speed_ups["rounds"].text == "1 (reference)"
    assert comparison.better_than_md(rows["tifl"]) == ["in rounds", "if clients differ in labels"]
    assert comparison.better_than_md(rows["md"]) == []
    assert rows["newest-m-5"].speed_ups["rounds"].side == "−"
    assert rows["target"].speed_up(comparison.datasets[0]).text == "1 of 3"


def test_needs_that_depend_on_settings_are_those_of_the_runs(folder):
    path = folder / "ranks" / "ranks.csv"
    row = {row.name: row for row in read(folder).rows}["flanp"]
    assert (row.needs, row.needs_delays) == (("depends on settings",), True)
    ranks = pd.read_csv(path)
    ranks["needs"] = ""
    ranks.loc[len(ranks)] = {**ranks.iloc[0], "scheme": "flanp", "needs": "delays"}
    ranks.to_csv(path, index=False)
    row = {row.name: row for row in read(folder).rows}["flanp"]
    assert (row.needs, row.needs_delays) == (("delays",), True)


def test_the_recommendation_says_who_is_faster_on_other_datasets(folder):
    assert read(folder).on_other_datasets() == ""
    (folder / "agreement").mkdir()
    for p, who in ((1.0, "no sampler is"), (0.01, "only Tier-based selection (TiFL) is")):
        (folder / "agreement" / "agreement.csv").write_text(
            f"measure,scheme,holm_p\nrounds,tifl,{p}\nrounds,md,\n"
        )
        sentence = read(folder).on_other_datasets()
        assert f"number of samplers, {who} significantly faster than MD sampling." in sentence


def test_the_terminal_shows_ranks_and_what_observing_costs(folder):
    text = "\n".join(comparison_lines(read(folder)))
    assert text.splitlines()[0].split()[:4] == ["sampler", "needs", "rounds", "bits"]
    assert "1.50+ (1)" in text
    assert "These runs: reduced scale." in text
    assert "update_norms: 32 bits from each slot that trained" in text


def test_only_what_observes_no_more_is_asked_for(folder):
    text = "\n".join(comparison_lines(read(folder), ["delays"]))
    assert {line.split()[0] for line in text.partition("\n\n")[0].splitlines()[2:]} == {
        name
        for name, member in Scheme.members().items()
        if not isinstance(member.needs, property) and member.needs <= {"delays"}
    }
    with pytest.raises(InputError, match="--needs delay: unknown; did you mean 'delays'"):
        list(comparison_lines(read(folder), ["delay"]))


def test_the_size_with_the_most_schemes_is_read(folder):
    for name in ("ranks", "matrix_rounds"):
        larger = folder / f"long_{name}"
        shutil.copytree(folder / name, larger)
        text = (larger / f"{name}.csv").read_text()
        (larger / f"long_{name}.csv").write_text(text.replace("1.5,1.2", "1.7,1.2"))
    comparison = read(folder)
    assert comparison.sources == ("long_ranks", "long_matrix_rounds")
    assert comparison.rows[0].speed_ups["rounds"].value == 1.7
    with (folder / "ranks" / "ranks.csv").open("a") as file:
        file.write("rounds,of_a_user,1.1,1.0,1.2,2,2,2,1,1,1\n")
    assert read(folder).sources == ("ranks", "matrix_rounds")


def test_the_decision_map_is_looked_up_by_its_answers(tmp_path):
    numbers = "1.2,1.5,1.1,1.4,1.3,2.0,1.05,1.3"
    (tmp_path / "bench_map").mkdir()
    (tmp_path / "bench_map" / "bench_map.csv").write_text(
        "measure,away,delays,losses,updates,unequal,skewed,advice,rule,speed_up,"
        "mean_map,worst_map,mean_always,worst_always,mean_md,worst_md,mean_fedavg,worst_fedavg\n"
        f"rounds,False,True,False,False,True,False,tifl,map,1.5,{numbers}\n"
        f"seconds,False,True,False,False,True,False,fedavg_normalised,fedavg,1.1,{numbers}\n"
        f"rounds,False,False,False,False,False,False,md,md,1.0,{numbers}\n"
    )
    advice = decision_map.read(tmp_path)
    yes = frozenset({"delays", "unequal"})
    first, second = advice["rounds", yes], advice["seconds", yes]
    assert (first.sampler, first.rule) == ("tifl", "map")
    assert (second.sampler, second.rule) == ("fedavg_normalised", "fedavg")
    assert (
        "costs 1.20 times as much as the best sampler allowed, at worst 1.50 times"
        in first.sentence
    )
    assert second.sentence.startswith("FedAvg")
    assert "for any sizes and labels: 1.10 × as fast as MD sampling" in second.sentence
    assert "the map 1.20 (1.50)" in second.sentence
    with pytest.raises(InputError, match=r"bench_map: missing; run 'snakemake"):
        list(advice_lines(tmp_path / "none", frozenset({"away"})))


def test_what_is_missing_is_named_with_what_makes_it(tmp_path):
    with pytest.raises(InputError, match=r"ranks\.csv: missing; run 'snakemake"):
        read(tmp_path)
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "ranks.csv").write_text("measure,scheme\n")
    with pytest.raises(InputError, match=r"ranks\.csv: has no column 'speed_up' "):
        read(tmp_path)
    with pytest.raises(InputError, match="--by second: unknown measure; did you mean 'seconds'"):
        read(tmp_path, "second")


def test_the_page_can_be_filtered_and_every_link_leads_somewhere(results, folder):
    report = results.build()
    page = Page(report / "schemes.html")
    items = {a["id"]: a for _, a in page.tags if "data-item" in a}
    assert items["tifl"]["data-observes"] == "delays"
    assert items["tifl"]["data-helps"] == "in rounds|if clients differ in labels"
    assert items["tifl"]["data-unbiased"] == "sometimes"
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for target in page.values("href"):
        name, _, anchor = target.partition("#")
        assert not name or name.startswith("data:") or (report / name).is_file(), target
        assert not anchor or name or anchor in ids, target
    assert page.of_class("badge") == page.of_class("notice") == 1
    assert 'href="schemes.html"' in (report / "index.html").read_text()


def test_the_page_begins_with_the_users_samplers(results, folder, monkeypatch):
    assert 'id="yours"' not in (results.build() / "schemes.html").read_text()
    monkeypatch.setattr(Scheme.member("tifl"), "__module__", "schemes_of_mine")
    comparison = read(folder)
    (mine,) = comparison.by_users
    assert mine.name == "tifl"
    assert [comparison.ranked(column) for column in comparison.overall] == [3, 1]
    assert comparison.datasets_on("+", mine) == ["MNIST by digit"]
    assert comparison.datasets_on("−", mine) == []
    page = (results.build() / "schemes.html").read_text()
    assert page.index('id="yours"') < page.index('id="recommendation"')


def test_without_the_cross_matrix_there_is_no_such_page(report):
    assert not (report / "schemes.html").exists()
    assert "schemes.html" not in (report / "index.html").read_text()


def test_the_best_practical_sampler_that_reached_every_target_is_recommended(folder):
    comparison = read(folder)
    recommended = {
        column.key: [row.name for row in rows] for column, rows in comparison.recommended().items()
    }
    assert recommended == {"rounds": ["tifl"], "bits": []}
    path = folder / "ranks" / "ranks.csv"
    missed = path.read_text().replace(
        "rounds,tifl,1.5,1.2,1.8,1,1,2,1,3,3", "rounds,tifl,1.5,1.2,1.8,1,1,2,1,2,3"
    )
    path.write_text(missed)
    comparison = read(folder)
    assert not any(comparison.recommended().values())
    assert [row.name for row, _ in comparison.unreliable()] == ["target", "tifl"]


def test_the_chooser_allows_what_the_answers_allow_and_measures_where_they_apply(folder):
    path = folder / "matrix_rounds" / "matrix_rounds.csv"
    away = "tifl,away,Away,labels and presence,3,3,1.2,1.1,1.3\n"
    path.write_text(path.read_text() + away + away.replace("tifl", "md"))
    comparison = read(folder)
    usual = {question.key: next(iter(question.answers)) for question in QUESTIONS}

    def faster(**answers):
        return [row.name for row in faster_than_md(comparison, {**usual, **answers})]

    assert faster() == []  # TiFL needs the delays
    assert faster(delays="yes") == ["tifl"]
    assert faster(delays="yes", unbiased="yes") == []
    lookup = lookup_table({"rounds": comparison}, {})
    assert len(lookup["picks"]) == len(list(situations())) / 3  # of three costs, one was drawn
    texts = [lookup["texts"][place] for place in lookup["picks"]["rounds nothing yes no no no no"]]
    assert [name for name, *_ in texts] == ["tifl", "md"]
    assert "1.50 × as fast as MD sampling" in texts[0][2]
    away = lookup["picks"]["rounds nothing yes yes no no no"][0]
    assert "1.20 × as fast as MD sampling [1.10, 1.30] on Away" in lookup["texts"][away][2]
    assert texts[1][2].startswith("the reference; every run reached the target; needs no info")
    (place,) = lookup["picks"]["rounds nothing no no no no no"]
    assert lookup["texts"][place][2].startswith("no allowed sampler is significantly better")


def test_the_chooser_begins_with_the_advice_of_the_decision_map(folder):
    numbers = {"map": 1.2, "always": 1.1, "md": 1.3, "fedavg": 1.05}
    advice = {
        ("rounds", frozenset({"unequal"})): Advice(
            "rounds", "uniform", "map", 1.25, 2, numbers, {rule: 1.9 for rule in numbers}
        ),
        ("rounds", frozenset({"unequal", "delays"})): Advice(
            "rounds", "fedavg", "map", 1.25, 0, numbers, {rule: 1.9 for rule in numbers}
        ),
    }
    lookup = lookup_table({"rounds": read(folder)}, advice)

    def picks(key):
        return [lookup["texts"][place] for place in lookup["picks"][key]]

    first, second = picks("rounds nothing no no yes no no")
    assert first[0] == "uniform"
    assert "1.25 × as fast as MD sampling on 2 datasets with these answers" in first[2]
    assert "costs 1.20 times as much as the best allowed sampler on a dataset" in first[2]
    assert second[0] == "md"
    assert "on all datasets" in picks("rounds nothing yes no yes no no")[0][2]
    # The map does not ask for unbiased samplers.
    assert "fedavg" not in [name for name, *_ in picks("rounds nothing yes no yes no yes")]


def test_advice_that_is_slower_than_md_on_such_datasets_says_so():
    numbers = dict.fromkeys(("map", "always", "md", "fedavg"), 1.2)
    slow = Advice("seconds", "flanp", "always", 0.867, 6, numbers, numbers)
    words = "0.867 × as fast as MD sampling on 6 datasets with these answers, but the best single"
    assert slow.speed_up_in_words.startswith(words)
    assert slow.speed_up_in_words in slow.sentence
    assert replace(slow, speed_up=1.2).speed_up_in_words.endswith("with these answers")


def test_means_over_datasets_leave_out_those_whose_clients_come_and_go():
    datasets = (Column("set a", "A", "labels"), Column("set b", "B", "labels and presence"))
    comparison = Comparison("rounds", (), (), datasets, (), ("ranks", "matrix_rounds"))
    assert comparison.averaged_datasets == 1
