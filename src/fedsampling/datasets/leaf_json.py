"""Shakespeare as LEAF's scripts write it: for those who already have its json files.

Such a file holds one split (training or test) of the users that the scripts drew, so that a run
can have exactly the clients of whoever made it.
"""

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsampling.datasets.shakespeare_roles import LENGTH
from fedsampling.datasets.vocabulary import encode
from fedsampling.partitions.shares import starts


@dataclass(frozen=True, eq=False)
class LeafSplit:
    """One split of one file.

    Parameters
    ----------
    user : tuple of str, length n
        In the file's order.
    play : tuple of str, length n
        LEAF's "hierarchies"; empty if the file has none, or not one for each user: LEAF's scripts
        drop users without dropping these.
    x : int8 array, shape (total, 80)
        Symbol numbers.
    y : int64 array, shape (total,)
    start : int64 array, shape (n + 1,)
        User k has rows ``start[k]:start[k + 1]``.
    """

    user: tuple[str, ...]
    play: tuple[str, ...]
    x: NDArray[np.int8]
    y: NDArray[np.int64]
    start: NDArray[np.int64]


def parse_leaf_json(content: bytes, vocabulary: str) -> LeafSplit:
    """Parse ``{"users": [...], "user_data": {user: {"x": [...], "y": [...]}}, ...}``.

    The file's own "num_samples" is not looked at: in LEAF's test splits of Shakespeare it counts
    the windows that the gap left out, too.

    Parameters
    ----------
    content : bytes
    vocabulary : {"printable", "leaf"}

    Raises
    ------
    ValueError
        If the content is not of this form.
    """
    try:
        whole = json.loads(content)
        user = tuple(whole["users"])
        data = [whole["user_data"][each] for each in user]
        samples = [(each["x"], each["y"]) for each in data]
        pairs = [pair for x, y in samples for pair in zip(x, y, strict=True)]
        joined = "".join(x + y for x, y in pairs).encode("latin-1")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a file of LEAF's Shakespeare ({error!r})") from error
    if not all(len(x) == LENGTH and len(y) == 1 for x, y in pairs):
        raise ValueError(f"not a file of LEAF's Shakespeare: a sample has not {LENGTH} characters")
    play = tuple(whole.get("hierarchies", ()))
    codes = encode(np.frombuffer(joined, np.uint8), vocabulary).reshape(-1, LENGTH + 1)
    return LeafSplit(
        user=user,
        play=play if len(play) == len(user) else (),
        x=np.ascontiguousarray(codes[:, :LENGTH]),
        y=codes[:, LENGTH].astype(np.int64),
        start=starts([len(y) for _, y in samples]),
    )
