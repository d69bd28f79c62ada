"""Tables with text and missing values: one-hot, standardised by the training samples."""

import numpy as np
import pandas as pd
import pytest

import fedsampling as fs

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "site": RNG.integers(0, 4, N),
        "age": RNG.normal(50, 10, N) + 1e9,
        "dose": np.where(RNG.random(N) < 0.2, np.nan, RNG.exponential(3, N)),
        "sex": RNG.choice(["f", "m", None], N, p=[0.5, 0.4, 0.1]),
        "smokes": RNG.random(N) < 0.3,
        "ill": RNG.choice(["no", "yes"], N),
    }
)
FRAME["age"] += 5 * FRAME["site"]
COLUMNS = {"target": "ill", "client": "site"}
AGE, DOSE, GAP, F, M, NON_SMOKER, SMOKER = range(7)


@pytest.mark.parametrize("encode", ["pooled", "by_client"])
def test_features_are_standardised_by_training_samples(encode):
    data = fs.from_frame(FRAME, encode=encode, test_share=0.3, **COLUMNS)
    assert data.x.shape[1] == 7
    parts = [slice(None)]
    if encode == "by_client":
        parts = [slice(*ends) for ends in zip(data.start, data.start[1:], strict=False)]
    for part in parts:
        rows = data.x[part].astype(float)
        known = rows[rows[:, GAP] == 0]
        for values in (rows[:, AGE], known[:, DOSE]):
            assert values.mean() == pytest.approx(0, abs=1e-5)
            assert values.std() == pytest.approx(1, abs=1e-5)
    if encode == "pooled":  # clients keep their differences
        means = [data.x[a:b, AGE].mean() for a, b in zip(data.start, data.start[1:], strict=False)]
        assert max(means) - min(means) > 0.8
    assert (data.x[data.x[:, GAP] == 1, DOSE] == 0).all()
    assert 0.1 < data.x[:, GAP].mean() < 0.3
    np.testing.assert_array_equal(data.x[:, NON_SMOKER] + data.x[:, SMOKER], 1)
    assert {*(data.x[:, F] + data.x[:, M]).tolist()} == {0.0, 1.0}


def test_tests_change_no_statistic_and_their_categories_none():
    is_test = np.arange(N) % 4 == 0
    marked = FRAME.assign(split=is_test)
    changed = marked.copy()
    changed.loc[is_test, "age"] += 1e3
    changed.loc[is_test & (marked["sex"] == "f"), "sex"] = "x"
    for encode in ("pooled", "by_client"):
        first, second = (
            fs.from_frame(frame, test="split", encode=encode, **COLUMNS)
            for frame in (marked, changed)
        )
        np.testing.assert_allclose(first.x, second.x, atol=1e-4)
        assert second.x_test[:, AGE].min() > 20
        assert (second.x_test[:, F] == 0).all()
        split = {"train": FRAME[~is_test], "test": changed[is_test].drop(columns="split")}
        third = fs.from_frame(split, encode=encode, **COLUMNS)
        np.testing.assert_allclose(third.x, second.x, atol=1e-4)
        np.testing.assert_allclose(third.x_test, second.x_test, atol=1e-3)


@pytest.mark.parametrize("encode", ["pooled", "by_client"])
def test_a_number_missing_in_the_tests_only_becomes_the_mean(encode):
    values = np.arange(20) / 10
    train = {"site": [*"AB"] * 20, "age": np.stack([values, values + 100], 1).ravel()}
    train["ill"] = ["no", "no", "yes", "yes"] * 10
    tests = {"site": [*"AABB"], "age": [None, 1, None, 101], "ill": ["no", "yes"] * 2}
    data = fs.from_frame({"train": train, "test": tests}, encode=encode, **COLUMNS)
    assert data.x.shape[1] == 1
    np.testing.assert_array_equal(data.x_test[::2], [[0], [0]])


def test_a_file_gives_the_same_features(tmp_path):
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, index=False)
    data = fs.load("files", path=str(path), target="ill", client="site", encode="by_client")
    expected = fs.from_frame(FRAME, encode="by_client", test_share=0.2, **COLUMNS)
    np.testing.assert_allclose(data.x, expected.x, atol=1e-5)
    np.testing.assert_allclose(data.x_test, expected.x_test, atol=1e-5)


@pytest.mark.parametrize(
    ("frame", "settings", "line"),
    [
        (FRAME, {}, "not numeric: 'sex'; remove them, or encode them"),
        (FRAME.assign(dose=None), {"encode": "pooled"}, "'dose': all values are missing; remove"),
        (FRAME.assign(sex=[1, "a"] * 200), {"encode": "pooled"}, "'sex': contains integers and te"),
        (FRAME.assign(sex=[f"P{k}" for k in range(N)]), {"encode": "pooled"}, "has 400 categories"),
        (FRAME.assign(age=1e300), {"encode": "pooled"}, "'age': 400 samples exceed 3.4e.38, first"),
        (FRAME[["site", "ill"]].assign(a=1), {"encode": "pooled"}, "features: all are constant"),
    ],
)
def test_what_cannot_be_encoded_is_one_line(frame, settings, line):
    with pytest.raises(fs.InputError, match=line) as error:
        fs.from_frame(frame, **settings, **COLUMNS)
    assert len(error.value.lines) == 1


def test_encoding_by_client_needs_tests_of_each_client():
    is_test = np.arange(N) % 4 == 0
    splits = {"train": FRAME[~is_test], "test": FRAME[is_test].drop(columns="site")}
    assert fs.from_frame(splits, encode="pooled", **COLUMNS).start_test is None
    with pytest.raises(fs.InputError, match="encode: by_client requires tests of each client"):
        fs.from_frame(splits, encode="by_client", **COLUMNS)
