"""Files that are derived from verified ones are kept, and made again if they were changed."""

import pytest

from fedsampling.base.files import write_bytes
from fedsampling.data.sources.cache import converted


@pytest.mark.parametrize(
    ("suffix", "damage", "times"),
    [
        ("", None, 1),
        ("", b"ro", 2),  # truncated
        ("", b"cols", 2),
        (".sha256", b"", 2),
        (".sha256", b"\xff", 2),
    ],
)
def test_a_converted_file_is_made_again_only_if_it_was_changed(suffix, damage, times, tmp_path):
    made = []

    def make(target):
        made.append(target)
        write_bytes(target, b"rows")

    path = tmp_path / "a.npz"
    assert converted(path, make) == path
    if damage is not None:
        (tmp_path / f"a.npz{suffix}").write_bytes(damage)
    for _ in range(2):
        assert converted(path, make).read_bytes() == b"rows"
    assert len(made) == times
