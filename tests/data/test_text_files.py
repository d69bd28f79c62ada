"""Files of text are read as they are written, or refused in one line."""

import gzip

import pandas as pd
import pytest
from tests.shared import line_of

import fedsampling as fs

from .hostile import assert_same

CELLS = [("site", "age", "y"), *((k % 6, f"{20 + k}.5", k % 2) for k in range(60))]


def text(separator=",", decimal=".", changes=()):
    rows = [[str(cell).replace(".", decimal) for cell in row] for row in CELLS]
    for row, value in changes:
        rows[row + 1][1] = value
    return "\n".join(separator.join(row) for row in rows)


TEXT = text().encode()
TWIN = text(";", ",").encode()
FILES = {  # a name, its content and settings; the start of the error's line
    "plain.csv": (TEXT, {}, ""),
    "tabs.tsv": (text("\t").encode(), {}, ""),
    "packed.csv.gz": (gzip.compress(TEXT), {}, ""),
    "packed.tsv.gz": (gzip.compress(text("\t").encode()), {}, ""),
    "utf16.csv": (text().encode("utf-16"), {}, ""),
    "big.csv": (b"\xfe\xff" + text().encode("utf-16-be"), {}, ""),
    "bom.csv": (text().encode("utf-8-sig"), {}, ""),
    "semicolons.csv": (TWIN, {"separator": ";", "decimal": ","}, ""),
    "bars.csv": (text("|").encode(), {"separator": "|"}, ""),
    "marked.csv": (
        text(changes=[(0, "NA"), (9, "?")]).encode(),
        {"missing": ["NA", "?"], "encode": "pooled"},
        "",
    ),
    "hint.csv": (
        TWIN,
        {},
        "one column 'site;age;y'; its cells are separated by ';': use separator=';', decimal=','",
    ),
    "comma.csv": (
        TWIN,
        {"separator": ";"},
        "column 'age': '20,5' in row 0 has a comma; if it is a",
    ),
    "na.csv": (
        text(changes=[(7, "NA")]).encode(),
        {"encode": "pooled"},
        "column 'age': 'NA' in row 7 is not a number, but 98 % of the values are; correct it or, "
        "if it marks a missing value, use missing='NA'",
    ),
    "typing.csv": (text(changes=[(7, "2o")]).encode(), {}, "column 'age': '2o' in row 7 is not a"),
    "latin.csv": (TEXT + "\n1,é,1".encode("latin-1"), {}, "unreadable ('utf-8' codec can't"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_text_are_read_as_they_are_written(name, tmp_path):
    content, settings, line = FILES[name]
    (tmp_path / name).write_bytes(content)
    call = lambda: fs.load(  # noqa: E731
        "files", path=str(tmp_path / name), client="site", test_share=0.2, **settings
    )
    if line:
        assert f"{name}: {line}" in line_of(call)
    elif "encode" not in settings:
        (tmp_path / "twin.csv").write_bytes(TEXT)
        twin = fs.load("files", path=str(tmp_path / "twin.csv"), client="site", test_share=0.2)
        assert_same(call(), twin)
    else:
        assert call().x.shape[1] == 2  # the number, and whether it is missing


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("parquet", {"missing": "NA"}),
        ("npz", {"decimal": ","}),
        ("npz", {"target": "label"}),
        ("npz", {"client": "site"}),
        ("npz", {"test": "split"}),
        ("npz", {"encode": "pooled"}),
    ],
)
def test_settings_without_effect_on_a_kind_of_file_are_refused(kind, settings, tmp_path):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(b"not read")
    ((name, _),) = settings.items()
    line = line_of(lambda: fs.load("files", path=str(path), **settings))
    assert f"{name}: no effect on a.{kind}; remove it" in line


def test_only_the_name_of_a_file_tells_its_kind(tmp_path):
    path = tmp_path / "results.npz" / "a.csv"
    path.parent.mkdir()
    path.write_bytes(TWIN)
    data = fs.load("files", path=str(path), client="site", separator=";", decimal=",")
    assert data.x.shape[1] == 1


def test_targets_with_a_decimal_comma_are_numbers(tmp_path):
    path = tmp_path / "a.csv"
    load = lambda: fs.load("files", path=str(path), separator=";", decimal=",")  # noqa: E731
    rows = ["client;age;y", *(f"{k % 6};{k};{k},5" for k in range(60))]
    path.write_text("\n".join(rows))
    data = load()
    assert sorted([*data.y, *data.y_test]) == [k + 0.5 for k in range(60)]
    path.write_text("\n".join([*rows, "0;60;1.500"]))  # a point separates thousands
    assert "column 'y': numbers, but '1.500' in row 60; correct" in line_of(load)


def test_the_clients_properties_are_written_as_the_samples(tmp_path):
    (tmp_path / "a.csv").write_bytes(TWIN)
    info = tmp_path / "info.csv"
    load = lambda: fs.load(  # noqa: E731
        "files",
        path=str(tmp_path / "a.csv"),
        client="site",
        client_info=str(info),
        separator=";",
        decimal=",",
    )
    info.write_text("client;energy\n" + "\n".join(f"{k};{k},5" for k in range(6)))
    assert load().info["energy"].tolist() == [k + 0.5 for k in range(6)]
    info.write_text("client,energy\n" + "\n".join(f"{k},{k}" for k in range(6)))
    assert line_of(load).endswith("its cells are separated by ',': save it with ';'")
    info.write_text("client;site;energy\n" + "\n".join(f"{k};0;{k}" for k in range(6)))
    assert "client_info: columns 'site' and 'client'; rename or remove one" in line_of(load)


def test_settings_of_text_apply_to_the_clients_properties_alone(tmp_path):
    frame = pd.DataFrame(CELLS[1:], columns=CELLS[0]).astype({"age": float})
    frame.to_parquet(tmp_path / "a.parquet")
    rows = [f"{k};{k},5" for k in range(6)]
    (tmp_path / "info.csv").write_text("\n".join(["site;energy", *rows]))
    files = {"path": str(tmp_path / "a.parquet"), "client_info": str(tmp_path / "info.csv")}
    data = fs.load("files", **files, client="site", separator=";", decimal=",")
    assert data.info["energy"].tolist() == [k + 0.5 for k in range(6)]


def test_ids_of_clients_keep_their_zeros_under_either_name(tmp_path):
    rows = [f"0{k % 6};{k};{k % 2}" for k in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["device;age;y", *rows]))
    (tmp_path / "info.csv").write_text("client;energy\n" + "\n".join(f"0{k};{k}" for k in range(6)))
    files = {"path": str(tmp_path / "a.csv"), "client_info": str(tmp_path / "info.csv")}
    data = fs.load("files", **files, client="device", separator=";")
    assert data.names == tuple(f"0{k}" for k in range(6))
    assert data.info["energy"].tolist() == [*range(6)]
