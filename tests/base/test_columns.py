"""Tables for the terminal."""

from fedsampling.base.columns import align


def test_cells_are_aligned_to_the_left_and_numbers_to_the_right():
    rows = [("experiment", "jobs", "runs"), ("mnist", "7", "12000")]
    assert align(rows, "  ") == ["  experiment  jobs  runs", "  mnist       7     12000"]
    assert align(rows, numbers_from=1) == ["experiment  jobs   runs", "mnist          7  12000"]
    assert align([]) == []
