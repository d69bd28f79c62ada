"""``make smoke``: everything at quick scale, on generated data."""

import compileall
from pathlib import Path

import pytest
from tests.checkout import Checkout, copy_project


@pytest.mark.long
def test_every_paper_is_drawn_and_judged_at_quick_scale(tmp_path):
    root = tmp_path / "smoke"
    copy_project(root, "papers")
    compileall.compile_dir(root / "src", quiet=1)  # its many processes then start sooner
    (root / "config.yaml").write_text("scale: quick\ndata: embedded\n")
    checkout = Checkout(root)
    status, output = checkout.call("snakemake", "--cores", "2")
    assert status == 0, output
    papers = {path.parent.name for path in (root / "papers").glob("*/paper.yaml")}
    assert {Path(name).stem for name in checkout.made_files("claims/*.json")} == papers
    assert (root / "results" / "report" / "index.html").is_file()
