import pytest
from tests.helpers.fake_results import redraw

from fedsampling.base.errors import InputError


def _content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_equal_results_give_equal_bytes_without_a_path_of_this_machine(results):
    first = _content(results.build())
    assert len(first) > 30
    assert _content(results.build()) == first
    assert _content(results.build("elsewhere")) == first
    machine = str(results.root).encode()
    assert [name for name, text in first.items() if machine in text] == []


def test_rebuilding_leaves_nothing_of_what_is_gone(results):
    report = results.build()
    assert (report / "second2025paper.html").exists()
    (results.root / "results/artefacts/second2025paper/figure3/artefact.json").unlink()
    results.build()
    assert not (report / "second2025paper.html").exists()
    assert not (report / "second2025paper").exists()


def test_failed_build_leaves_the_earlier_report_as_it_was(results):
    report = results.build()
    before = _content(report)
    folder = results.root / "results/artefacts/first2022paper/table1"
    (folder / "table1.html").write_bytes(b"\xff")
    redraw(folder)
    with pytest.raises(UnicodeDecodeError):
        results.build()
    assert _content(report) == before
    assert {path.name for path in report.parent.iterdir()} == {
        *("artefacts", "claims", "report", "summaries")
    }


def test_an_unsuitable_folder_is_rejected_and_never_replaced(results):
    (results.root / "results" / "file").write_text("")
    for folder, message in (
        ("artefacts", "not a report"),
        ("file/report", "file/report: cannot be written"),
    ):
        with pytest.raises(InputError, match=message):
            results.build(folder)
    (results.root / "Snakefile").unlink()
    with pytest.raises(InputError, match="no Snakefile;"):
        results.build()
    assert (results.root / "results/artefacts/first2022paper/figure1/figure1.svg").exists()
