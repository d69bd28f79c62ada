"""Every public function has an example in its docstring, and the example runs as it stands."""

import doctest
import inspect

import pytest

import fedsampling as fs

FUNCTIONS = [name for name in fs.__all__ if inspect.isfunction(getattr(fs, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_example_runs(name, tmp_path, monkeypatch):
    if name == "from_huggingface":
        pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(fs, name), name)
    assert example.examples
    output = []
    doctest.DocTestRunner().run(example, out=output.append)
    assert not output, "".join(output)
