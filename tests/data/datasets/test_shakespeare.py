import csv
import string
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.data.datasets.loading import load
from tests.data.packing import pack

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import shakespeare
from fedsampling.data.datasets.roles import parse, pooled, read
from fedsampling.data.datasets.shakespeare import encode_windows, windows
from fedsampling.data.partitions.partition import split

TEXTS = {
    ("B", "two"): string.ascii_letters * 2,
    ("A", "one"): "a  lot   of spaces " + "x" * 80,
    ("A", "short"): "y" * 80,
}
loaded = partial(load, "shakespeare", importance="equal")
LEAF = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"


@pytest.mark.parametrize(
    ("vocabulary", "symbols"), [("printable", string.printable), ("leaf", LEAF)]
)
def test_samples_are_80_characters_and_the_next(vocabulary, symbols):
    roles = pooled(TEXTS)
    index, start = windows(roles)
    x, y = encode_windows(roles, index, vocabulary)
    assert (x.dtype, y.dtype) == (np.int8, np.int64)
    texts = ("a lot of spaces " + "x" * 80, string.ascii_letters * 2)
    row = 0
    for text in texts:
        for i in range(len(text) - 80):
            assert "".join(symbols[code] for code in x[row]) == text[i : i + 80]
            assert symbols[y[row]] == text[i + 80]
            row += 1
    assert row == len(x) == start[-1]


def test_unknown_characters_are_named():
    roles = pooled({("A", "one"): "%" * 90})
    with pytest.raises(ValueError, match="not in the vocabulary 'leaf': '%'"):
        encode_windows(roles, np.array([0]), "leaf")


class TestEmbedded:
    def test_every_role_is_a_client_with_own_tests(self):
        dataset = loaded()
        assert dataset.n_clients == 100
        assert dataset.x.shape[1:] == (80,)
        assert dataset.classes == 100
        assert np.diff(dataset.start_test).min() >= 1

    def test_test_windows_begin_where_the_training_windows_end(self):
        dataset = loaded(clients=1)
        last, first = dataset.x[-1], dataset.x_test[0]
        # 80 steps on: the last training window's label is the first character of a test.
        assert first[0] == dataset.y[-1]
        assert not np.array_equal(last, first)

    def test_fraction_and_min_samples_limit_the_clients(self):
        assert loaded(fraction=0.3).n_clients < loaded().n_clients
        with pytest.raises(InputError, match="min_samples: 1000000 leave no client"):
            loaded(min_samples=10**6)

    def test_every_and_length_keep_some_samples_of_a_role_and_their_last_characters(self):
        full, part = loaded(clients=3), loaded(clients=3, every=4, length=10)
        for client in range(3):
            first, last = full.start[client : client + 2]
            rows = slice(*part.start[client : client + 2])
            assert np.array_equal(part.x[rows], full.x[first:last:4, -10:])
            assert np.array_equal(part.y[rows], full.y[first:last:4])
        assert part.x_test.shape[1:] == (10,)


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
