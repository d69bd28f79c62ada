import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fedsampling.data.datasets.shakespeare import verify, windows
from fedsampling.data.formats.shakespeare_roles import parse, read
from fedsampling.data.sources.fetch import fetch_dataset

LONG = "word " * 30

PLAYS = f"""\
contents and licence
THE SONNETS

by William Shakespeare

  Love. {LONG}
  Hate. {LONG}

1604

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


@pytest.mark.parametrize("name", ["100.zip", "100.txt"])
def test_archive_and_carriage_returns_change_nothing(name, tmp_path):
    path = tmp_path / name
    content = PLAYS.replace("\n", "\r\n").encode()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("100.txt", content)
    else:
        path.write_bytes(content)
    assert text_by_user(read(path)) == text_by_user(parse(PLAYS))


def test_other_text_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="not the complete works"):
        parse("by William Shakespeare\n")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.txt", PLAYS)
        archive.writestr("b.txt", PLAYS)
    with pytest.raises(ValueError, match="expected an archive of one text"):
        read(tmp_path / "two.zip")


@pytest.fixture(scope="module")
def text(mirror, tmp_path_factory):
    if not Path(mirror, "shakespeare").is_dir():
        pytest.skip(f"no real data: {mirror} does not hold shakespeare/")
    return next(
        iter(fetch_dataset("shakespeare", tmp_path_factory.mktemp("cache"), mirror).values())
    )


def test_users_samples_and_plays_are_those_of_leafs_own_scripts(text, mirror):
    roles = read(text)
    result = zip(roles.user, np.diff(windows(roles)[1]).tolist(), roles.play, strict=True)
    with Path(mirror, "shakespeare", "leaf_expected_users.tsv").open() as table:
        expected = [
            (row["user"], int(row["n_samples"]), row["play"])
            for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    assert list(result) == expected
    assert verify(roles) == ("1,130 roles", "4,226,206 samples")
