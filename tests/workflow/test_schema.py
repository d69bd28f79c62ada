"""Generated files agree with the typed models."""

import json

import pytest
import yaml
from jsonschema import Draft7Validator
from tests.shared import ROOT

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import Config
from fedsampling.workflow import schema


def test_the_repositorys_generated_files_are_up_to_date(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert schema.differing() == []


def test_the_default_configuration_has_the_defaults_of_the_model():
    assert Config(**yaml.safe_load(schema.documented())) == Config()


def test_changed_values_are_accepted_but_an_unknown_key_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(schema, "REPOSITORY", tmp_path)
    schema.write()
    path = tmp_path / "config.yaml"
    path.write_text(path.read_text().replace("scale: quick", "scale: paper"))
    assert schema.differing() == []
    path.write_text(path.read_text() + "scal: paper\n")
    assert schema.differing() == ["config.yaml"]


@pytest.mark.parametrize("name", ["config", "paper"])
def test_schemas_accept_the_repositorys_files_and_reject_a_misspelt_key(name):
    # "$defs" are found by reference, so the drafts do not differ in what these schemas use.
    schema = json.loads((ROOT / f"workflow/schemas/{name}.schema.json").read_text("utf-8"))
    files = [ROOT / "config.yaml"] if name == "config" else ROOT.glob("papers/*/paper.yaml")
    for path in files:
        content = json.loads(json.dumps(yaml.safe_load(path.read_text("utf-8")), default=str))
        assert list(Draft7Validator(schema).iter_errors(content)) == []
        assert list(Draft7Validator(schema).iter_errors(content | {"titel": ""}))


def test_other_folders_are_not_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for verb in (schema.write, schema.check):
        with pytest.raises(InputError, match="is not the repository of this fedsampling"):
            verb()
    assert list(tmp_path.iterdir()) == []
