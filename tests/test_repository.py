"""Files at the top of the repository agree with each other and with the code."""

import re
import subprocess
import tomllib

import pytest
import yaml
from tests.shared import ROOT

import fedsampling

SOURCES = ROOT / "src/fedsampling/data/sources/sources.yaml"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]


def read(name):
    return (ROOT / name).read_text("utf-8")


def words(text):
    return " ".join(text.split())


def test_notice_has_the_licence_of_every_source_of_data():
    notice = words(read("NOTICE"))
    for name, editions in yaml.safe_load(SOURCES.read_text("utf-8")).items():
        for edition in editions:
            assert f" {name} {words(edition['licence'])}" in notice


def test_versions_agree():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == fedsampling.__version__
    assert re.search(r"^## Unreleased$", read("CHANGELOG.md"), flags=re.MULTILINE)


def test_addresses_are_in_the_citation_and_the_package_or_in_neither():
    citation = yaml.safe_load(read("CITATION.cff"))
    urls = tomllib.loads(read("pyproject.toml"))["project"].get("urls", {})
    assert urls.get("Repository") == citation.get("repository-code")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(path):
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    targets = {target for text in commands for target in re.findall(r"make ([\w-]+)", text)}
    assert targets <= set(re.findall(r"^([\w-]+):", read("Makefile"), flags=re.MULTILINE))
    assert any("make " in text or ".ci/run" in text for text in commands)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_ask_for_something(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    assert all(field["attributes"].get("label") for field in form["body"])
    identifiers = [field["id"] for field in form["body"]]
    assert len(identifiers) == len(set(identifiers))


def test_make_lists_its_targets():
    words = ["make", "--no-print-directory", "help"]
    output = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [line.split()[0] for line in output.stdout.splitlines()]
    documented = re.findall(r"^([\w-]+):.*## ", read("Makefile"), flags=re.MULTILINE)
    assert listed == documented
    assert "reproduce" in listed
