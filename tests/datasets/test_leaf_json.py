import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedsampling.datasets.leaf_json import parse_leaf_json
from fedsampling.datasets.vocabulary import VOCABULARIES

A, B = "a" * 80, "b" * 79 + "c"


def content(**changed: Any) -> bytes:
    whole = {
        "users": ["P_TWO", "P_ONE"],
        "hierarchies": ["P", "P"],
        "num_samples": [2, 1],
        "user_data": {"P_ONE": {"x": [B], "y": ["d"]}, "P_TWO": {"x": [A, B], "y": ["b", "."]}},
    }
    return json.dumps(whole | changed).encode()


def test_users_keep_the_files_order():
    found = parse_leaf_json(content(), "leaf")
    symbols = VOCABULARIES["leaf"]
    assert (found.user, found.play) == (("P_TWO", "P_ONE"), ("P", "P"))
    assert found.start.tolist() == [0, 2, 3]
    assert ["".join(symbols[code] for code in x) for x in found.x] == [A, B, B]
    assert "".join(symbols[code] for code in found.y) == "b.d"


@pytest.mark.parametrize("plays", [[], ["P", "P", "P"]])
def test_plays_of_other_users_are_left_out(plays: list[str]):
    assert parse_leaf_json(content(hierarchies=plays), "leaf").play == ()


@pytest.mark.parametrize(
    "wrong",
    [
        b"no json",
        b"[]",
        content(users=["P_THREE"]),
        content(user_data={"P_ONE": {"x": [A], "y": []}, "P_TWO": {"x": [], "y": []}}),
        content(user_data={"P_ONE": {"x": ["a"], "y": ["b"]}, "P_TWO": {"x": [], "y": []}}),
        content(user_data={"P_ONE": {"x": [A], "y": ["ab"]}, "P_TWO": {"x": [], "y": []}}),
        content(user_data={"P_ONE": {"x": [[1] * 80], "y": [2]}, "P_TWO": {"x": [], "y": []}}),
    ],
)
def test_other_files_are_refused(wrong: bytes):
    with pytest.raises(ValueError, match="not a file of LEAF's Shakespeare"):
        parse_leaf_json(wrong, "leaf")


def test_a_file_that_leafs_scripts_wrote_is_read(mirror: str):
    path = Path(mirror, "shakespeare", "all_data_niid_2_keep_100_test_8.json.xz")
    if not path.exists():
        pytest.skip(f"no real data: {path} is absent")
    content = lzma.decompress(path.read_bytes())
    found = parse_leaf_json(content, "leaf")
    assert (len(found.user), len(found.play), found.x.shape) == (109, 109, (16_507, 80))
    assert np.diff(found.start).tolist() == json.loads(content)["num_samples"]
    whole, symbols = json.loads(content), VOCABULARIES["leaf"]
    for user, row in zip(found.user, found.start[:-1], strict=True):
        own = whole["user_data"][user]
        assert "".join(symbols[code] for code in found.x[row]) == own["x"][0]
        assert symbols[found.y[row]] == own["y"][0]
