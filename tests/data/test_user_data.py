"""Users' own samples become clients, or are refused in one line."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from tests.shared import line_of

import fedsampling as fs
from fedsampling.base.records import check
from fedsampling.data.datasets.dataset import Dataset

from .hostile import Columns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.where(X[:, 0] > 0, "cat", "dog")
OWNER = np.repeat(["a", "b", "c"], [10, 20, 30])
IMAGES = RNG.integers(0, 256, (60, 6, 6))
TOKENS = IMAGES[:, 0]
FRAME = pd.DataFrame(X, columns=[*"pqrs"]).assign(y=Y, client=OWNER)
INFO = pd.DataFrame({"client": [*"cab"], "energy": [3.0, 1.0, 2.0], "site": [*"zxy"]})
IS_TEST = np.arange(60) % 5 == 0
FRAME_OF_ROWS = FRAME.assign(**{"Unnamed: 0": 1})
BY_LABEL = {"name": "all_by_dirichlet", "alpha": 1.0, "clients": 5}
ROTATED = {"name": "rotated", "clients": 2, "degrees": 9}
LOADER = torch.utils.data.DataLoader
STREAMED = torch.utils.data.ChainDataset([])
WEIGHTED = torch.utils.data.WeightedRandomSampler(np.arange(1.0, 61), 60)


def test_images_tokens_and_targets_keep_their_kind():
    assert fs.federated(IMAGES, Y, clients=OWNER).x.dtype == np.uint8
    tokens = fs.federated(TOKENS, IMAGES[:, 1, 0], clients=OWNER, tokens=True)
    assert tokens.x.dtype == np.int64
    assert tokens.classes == max(TOKENS.max(), tokens.y.max()) + 1
    regression = fs.federated(X, X[:, 0], clients=OWNER)
    assert (regression.y.dtype, regression.classes) == (np.float64, None)


def test_a_partition_assigns_samples_and_tests_are_held_out():
    partition = fs.partitions.AllByDirichlet(alpha=1.0, clients=5)
    data = fs.federated(X, Y, partition=partition, test_share=0.2)
    assert data.n_clients == 5
    whole = fs.federated(X, Y, partition=partition).n_samples
    np.testing.assert_array_equal(np.diff(data.start_test), whole // 5)
    np.testing.assert_array_equal(data.n_samples, whole - whole // 5)
    by_digit = fs.partitions.ByDigit(clients_per_label=2)
    assert fs.federated(X, Y, partition=by_digit, test_share=0.2).n_clients == 4
    by_owner = fs.federated(X, Y, clients=OWNER, test_share=0.2, seed=np.int64(3))
    assert by_owner.n_samples.tolist() == [8, 16, 24]
    assert np.diff(by_owner.start_test).tolist() == [2, 4, 6]
    assert by_owner.names == ("a", "b", "c")
    uneven = fs.federated(X, Y, clients=OWNER, test_share=0.25)
    np.testing.assert_allclose(uneven.p * 60, [10, 20, 30])  # with the tests


def test_each_way_of_passing_test_samples_keeps_their_owners(tmp_path):
    train, test = ({"x": X[part], "y": Y[part]} for part in (~IS_TEST, IS_TEST))
    owners = {"clients": OWNER[~IS_TEST], "clients_test": OWNER[IS_TEST]}
    expected = fs.federated(**train, x_test=test["x"], y_test=test["y"], **owners, client_info=INFO)
    assert np.diff(expected.start_test).tolist() == [2, 4, 6]
    for client, rows in enumerate(X[IS_TEST & (name == OWNER)] for name in "abc"):
        owned = slice(*expected.start_test[client : client + 2])
        np.testing.assert_array_equal(expected.x_test[owned], rows.astype(np.float32))

    def own(name):
        parts = [part & (name == OWNER) for part in (~IS_TEST, IS_TEST)]
        return [array[part] for part in parts for array in (X, Y)]

    marked = FRAME.assign(split=np.where(IS_TEST, "test", "train"))
    marked.to_csv(tmp_path / "data.csv", index=False)
    marked.to_parquet(tmp_path / "data.parquet")
    INFO.to_csv(tmp_path / "info.csv", index=False)
    arrays = train | {f"{name}_test": part for name, part in test.items()}
    clients = {"client": owners["clients"], "client_test": owners["clients_test"]}
    np.savez(tmp_path / "data.npz", **arrays, **clients)
    splits = {"train": FRAME[~IS_TEST], "test": FRAME[IS_TEST]}
    columns = {"target": "y", "client": "client", "client_info": INFO}
    other_name = {"client": "owner"}
    renamed = columns | {"client": "owner", "client_info": INFO.rename(columns=other_name)}
    files = {"client_info": str(tmp_path / "info.csv")}
    for data in (
        fs.from_clients({name: own(name) for name in "cab"}, client_info=INFO),
        fs.from_frame(splits, **columns),
        fs.from_frame(marked.assign(split=IS_TEST), test="split", **columns),
        fs.from_frame(marked.rename(columns=other_name), test="split", **renamed),
        fs.load("files", path=str(tmp_path / "data.csv"), test="split", **files),
        fs.load("files", path=str(tmp_path / "data.parquet"), test="split", **files),
        fs.load("files", path=str(tmp_path / "data.npz"), **files),
    ):
        for name in ("x", "y", "start", "x_test", "y_test", "start_test"):
            np.testing.assert_array_equal(getattr(data, name), getattr(expected, name))
        assert data.names == ("a", "b", "c")
        info = {name: values.tolist() for name, values in data.info.items()}
        assert info == {"energy": [1, 2, 3], "site": ["x", "y", "z"]}
        assert not data.info["energy"].flags.writeable


def test_a_partition_by_writer_keeps_the_names_of_the_clients_that_it_draws():
    partition = {"name": "by_writer", "clients": 2}
    info = pd.DataFrame({"client": ["a", "c"], "energy": [1.0, 3.0]})
    data = fs.federated(X, Y, clients=OWNER, partition=partition, seed=4, client_info=info)
    assert (data.names, data.n_samples.tolist()) == (("c", "a"), [30, 10])
    assert data.info["energy"].tolist() == [3, 1]


@pytest.mark.parametrize("owner", [[0.0, 1.0], [False, True]])
def test_owners_that_equal_numbers_of_clients_keep_their_type(owner):
    info = {"client": owner, "energy": [3, 4]}
    data = fs.federated(X, Y, clients=owner * 30, client_info=info)
    assert [*map(type, data.names)] == [*map(type, owner)]
    assert data.info["energy"].tolist() == [3, 4]


def test_clients_have_their_names_and_tests_in_the_table_by_client():
    data = fs.federated(X, Y, clients=OWNER, test_share=0.2)
    work = {"model": "softmax", "steps": 1, "batch": 5, "step": 0.1, "rounds": 2}
    history = fs.train(data, fs.scheme("md", m=2), by_client=True, **work)
    tests = fs.by_client(history).set_index("client")["tests"]
    assert tests.to_dict() == {"a": 2, "b": 4, "c": 6}


class Drawn(torch.utils.data.Dataset):
    """Pairs of sample and label, read one by one; with noise if it is asked for."""

    def __init__(self, noise=0.0):
        self.noise = noise

    def __len__(self):
        return 60

    def __getitem__(self, index):
        return torch.tensor(X[index]) + self.noise * torch.rand(4), int(Y[index] == "dog")


def test_datasets_and_loaders_of_pytorch_are_read_in_their_order():
    tensors = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y == "dog").long())
    expected = fs.federated(X, Y, clients=OWNER, x_test=X, y_test=Y)
    for source in (Drawn(), tensors, LOADER(Drawn(), 7, shuffle=True, drop_last=True)):
        data = fs.federated(source, x_test=source, clients=OWNER)
        np.testing.assert_array_equal(data.x, expected.x)
        np.testing.assert_array_equal(data.y_test, expected.y_test)
    parts = [torch.utils.data.Subset(Drawn(), np.flatnonzero(name == OWNER)) for name in "abc"]
    clients = dict(zip("abc", parts, strict=True))
    np.testing.assert_array_equal(fs.from_clients(clients).x, expected.x)
    tested = fs.from_clients({name: (part, part) for name, part in clients.items()})
    np.testing.assert_array_equal(tested.start_test, tested.start)
    assert fs.federated(Drawn(), partition=BY_LABEL, test_share=0.2).n_clients == 5


def test_splits_and_images_of_hugging_face_become_clients():
    images = Columns({"image": [*IMAGES], "y": Y, "by": OWNER})
    splits = {"train": images, "test": Columns({"image": [*IMAGES[:9]], "y": Y[:9]})}
    data = fs.from_huggingface(splits, features="image", target="y", client="by")
    assert (data.x.dtype, data.x.shape, len(data.x_test)) == (np.uint8, (60, 6, 6), 9)


def test_content_decides_the_digest():
    def digest(x, owner=OWNER):
        return fs.federated(x, Y, clients=owner, name="mine").inputs["mine"]

    changed = X.copy()
    changed[0, 0] += 1
    assert digest(X) == digest(X.copy())
    assert len({digest(X), digest(changed), digest(X, OWNER[::-1])}) == 3


def federated(**changed):
    return lambda: fs.federated(**{"x": X, "y": Y, "clients": OWNER} | changed)


def from_frame(frame=FRAME, **changed):
    return lambda: fs.from_frame(frame, **{"target": "y", "client": "client"} | changed)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (federated(y=Y[:5]), "x, y: 60 samples but 5 labels"),
        (federated(y=None), "y: missing; pass a label for each sample"),
        (federated(clients=None), "clients, partition: both missing"),
        (federated(x=X * np.nan), "x: 60 samples are NaN or infinite, first row 0; remove them"),
        (federated(x_test=X, y_test=["bird"] * 60), "y_test: no training sample has label 'bird'"),
        (federated(x=TOKENS, y=TOKENS / 2, tokens=True), "y: contains floating-point numbers;"),
        (federated(x_test=X[:, :2], y_test=Y), "x_test: samples have shape (2,)"),
        (federated(test_share=0.01), "test_share: 0.01 of a client's samples, at most 30"),
        (federated(partition="by_digit"), "partition: by_digit cannot be combined with clients"),
        (federated(clients=None, partition="by_digit"), "partition: by_digit also assigns test"),
        (federated(y=X[:, 0], clients=None, partition="by_digit"), "partition: needs labels"),
        (federated(clients=None, partition=ROTATED, test_share=0.2), "partition: rotated needs im"),
        (federated(x=Drawn(noise=1), y=None), "x: sample 0 differs each time"),
        (federated(x=LOADER(Drawn(), sampler=WEIGHTED), y=None), "x: the loader's samples differ"),
        (federated(x=Drawn(noise="1"), y=None), "x: sample 0: TypeError: "),
        (federated(x=LOADER(STREAMED), y=None), "x: an iterable dataset has no order"),
        (federated(test_share=1), "test_share: 1 is out of range; must be less than 1.0"),
        (federated(partition=1), "partition: must be a name, a dict or a record"),
        (federated(clients=[1] * 59), "clients: shape (59,); must be one owner per sample, (60,)"),
        (federated(client_info="no.csv"), "client_info: str is invalid; must be a table"),
        (federated(client_info=INFO.drop(columns="client")), "client_info: no column 'client'"),
        (federated(client_info=INFO[:2]), "client_info: 0 rows for client 'b'"),
        (federated(client_info=INFO.replace("b", "d")), "client_info: no training sample of"),
        (federated(x_test=X, y_test=Y, clients_test=[1] * 60), "clients_test: contains integers"),
        (lambda: fs.from_clients([(X, Y), (X[:, :2], Y)]), "client 1: samples of shape (2,)"),
        (lambda: fs.from_clients({(0, 1): (X, Y)}), "samples: name (0, 1) is invalid"),
        (lambda: fs.from_clients([(X,), (X,)]), "client 0: tuple is invalid; must be (x, y)"),
        (lambda: fs.from_clients([(Drawn(),) * 4]), "client 0: tuple is invalid; must be (x, y)"),
        (lambda: fs.from_clients([(X, Y)], test=1), "test: unknown in from_clients; did you mean"),
        (from_frame(target="z"), "target: no column 'z'; known: client, p, q"),
        (from_frame(FRAME_OF_ROWS), "frame: column 'Unnamed: 0' has row numbers"),
        (from_frame({"train": FRAME, "test": FRAME}, test="p"), "test: cannot be combined with"),
        (from_frame(test="p"), "frame: column 'p': must be true or false"),
        (lambda: fs.load("files", path="data.txt"), "dataset.path: 'data.txt' is invalid; must"),
    ],
)
def test_invalid_samples_clients_frames_and_files_get_one_line(call, line):
    assert line_of(call).startswith(line)


def test_settings_of_files_cover_their_content(tmp_path):
    data, info = (str(tmp_path / name) for name in ("data.csv", "info.csv"))

    def settings(shift=0, energy=(1, 2, 3)):
        FRAME.assign(p=FRAME["p"] + shift).to_csv(data, index=False)
        INFO.assign(energy=energy).to_csv(info, index=False)
        return check(Dataset, {"name": "files", "path": data, "client_info": info}, "").model_dump()

    first = settings()
    assert settings() == first
    assert first != settings(shift=1) != settings(energy=(1, 2, 4)) != first
    with pytest.raises(fs.InputError, match="has changed; remove info_content"):
        check(Dataset, first, "")
    plain = check(Dataset, {"name": "files", "path": data}, "")
    assert not {"test", "client_info", "info_content"} & {*plain.model_dump()}


def test_whole_numbers_as_targets_cause_a_warning():
    labels = np.arange(60) % 3
    with pytest.warns(UserWarning, match="convert them to integers if they are classes"):
        assert fs.federated(X, labels.astype(float), clients=OWNER).classes is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fs.federated(X, labels, clients=OWNER).classes == 3
        assert fs.federated(X, labels + 0.5, clients=OWNER).classes is None


def test_huge_features_are_named_as_the_cause_of_divergence():
    data = fs.federated(1e30 * X, Y, clients=OWNER)
    work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    with pytest.warns(UserWarning, match=r"features reach [23]e\+30: scale them"):
        fs.train(data, fs.scheme("md", m=2), **work)


def test_a_label_that_a_split_leaves_to_the_tests_is_refused():
    y = ["a"] * 10 + ["b"] * 9 + ["c"]
    lines = []
    for seed in range(20):
        try:
            data = fs.federated(np.ones((20, 2)), y, clients=[0] * 20, test_share=0.3, seed=seed)
            assert {*data.y_test.tolist()} <= {*data.y.tolist()}
        except fs.InputError as error:
            lines.append(str(error))
    assert {*lines} == {
        "test_share: all samples of label 'c' became test samples; add samples of it, remove it, "
        "or use another seed"
    }
