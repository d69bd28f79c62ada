"""LIBSVM's text format."""

from hypothesis import given
from hypothesis import strategies as st

from fedsampling.data.datasets.libsvm import parse_libsvm


class TestParser:
    def test_hand_written_file_is_read_as_written(self):
        assert parse_libsvm(b"1 1:2", 1)[0].tolist() == [[2.0]]  # without a line's end
        x, y = parse_libsvm(b"-1.0 1:0.5 4:-2e-3\n+1\n\n1 2:.25 \r\n", 4)
        assert y.tolist() == [-1, 1, 1]
        assert x.tolist() == [[0.5, 0, 0, -0.002], [0, 0, 0, 0], [0, 0.25, 0, 0]]

    @given(
        st.lists(
            st.dictionaries(st.integers(1, 22), st.floats(-1e6, 1e6, allow_subnormal=False)),
            max_size=8,
        )
    )
    def test_what_is_written_comes_back_exactly(self, rows):
        lines = ["-1 " + " ".join(f"{i}:{row[i]!r}" for i in sorted(row)) for row in rows]
        x, y = parse_libsvm("\n".join(lines).encode(), 22)
        assert x.tolist() == [[row.get(i, 0.0) for i in range(1, 23)] for row in rows]
        assert y.tolist() == [-1.0] * len(rows)
