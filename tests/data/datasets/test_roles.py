"""Plays are cut into roles as LEAF cuts them."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.data.packing import pack

from fedsampling.data.datasets import shakespeare
from fedsampling.data.datasets.roles import parse, read
from fedsampling.data.datasets.shakespeare import windows
from fedsampling.data.partitions.partition import split

LONG = "word " * 30
LICENCE = "contents and licence\n" * 6
PLAYS = f"""\
{LICENCE}\
A PLAY; OR, WHAT YOU WILL


by William Shakespeare
  FIRST LORD. {LONG}
    second line,
      third   line
not his
  Second Lord. {LONG}
    two lines only
  First Lord. fourth
                       Exit
THE COMEDY OF ERRORS

by William Shakespeare
DUKE. {LONG}
to the end
<Exeunt>
nobody's
ACT II. Scene one
nobody's
MERCHANT. Here.
One.
Two.

DUKE. last
A POEM

by William Shakespeare
  Solo. {LONG}
    a line
    a line
"""


def text_by_user(roles):
    """What each user says."""
    return {
        user: bytes(roles.text[a:b]).decode()
        for user, a, b in zip(roles.user, roles.begin[:-1], roles.begin[1:], strict=True)
    }


def test_hand_written_plays_are_cut_as_leaf_cuts_them():
    roles = parse(PLAYS)
    assert text_by_user(roles) == {
        "A_PLAY__OR__WHAT_YOU_WILL_FIRST_LORD": LONG + "second line, third line fourth Exit ",
        "THE_COMEDY_OF_ERRORS_DUKE": LONG + "to the end last A POEM ",
    }
    assert roles.play == ("A PLAY; OR, WHAT YOU WILL", "THE COMEDY OF ERRORS")


def test_the_archive_is_read_and_carriage_returns_change_nothing(tmp_path):
    path = pack(tmp_path / "100.zip", {"100.txt": PLAYS.replace("\n", "\r\n").encode()})
    assert text_by_user(read(path)) == text_by_user(parse(PLAYS))


def test_users_samples_and_plays_are_those_of_leafs_own_scripts(mirror, tmp_path):
    if not Path(mirror, "shakespeare").is_dir():
        pytest.skip(f"no real data: {mirror} does not hold shakespeare/")
    roles, _, _ = shakespeare._official(tmp_path, mirror)
    result = zip(roles.user, np.diff(windows(roles)[1]).tolist(), roles.play, strict=True)
    with Path(mirror, "shakespeare", "leaf_expected_users.tsv").open() as table:
        expected = [
            (row["user"], int(row["n_samples"]), row["play"])
            for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    assert list(result) == expected
    assert (len(roles.user), windows(roles)[1][-1]) == (1_130, 4_226_206)
    # LEAF's page reports 660 roles after its default split.
    for train, count in ((0.8, 799), (0.9, 660)):
        assert len(split(windows(roles), train, shakespeare.GAP)[0][1]) - 1 == count
