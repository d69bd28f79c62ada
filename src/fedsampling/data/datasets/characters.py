"""Characters as numbers, by the vocabularies of LEAF and of TensorFlow Federated."""

import string

import numpy as np
from numpy.typing import NDArray

_LEAF = "\n !\"&'(),-.0123456789:;>?" + string.ascii_uppercase + "[]" + string.ascii_lowercase + "}"
_TFF = "dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#'/37;?bfjnrvzBFJNRVZ\"&*.26:\naeimquyAEIMQUY]!%)-159\r"
VOCABULARIES = {"printable": string.printable, "leaf": _LEAF, "tff": _TFF}
SIZES = {name: len(symbols) for name, symbols in VOCABULARIES.items()}


def encode(text: NDArray[np.uint8], vocabulary: str) -> NDArray[np.int8]:
    """Replace the characters of a text, Latin-1 codes, by their indices in the vocabulary."""
    symbols = VOCABULARIES[vocabulary].encode("latin-1")
    table = np.full(256, 0 if vocabulary == "tff" else -1, np.int8)  # TFF's accepts all characters
    table[np.frombuffer(symbols, np.uint8)] = np.arange(len(symbols))
    codes = table[text]
    if (codes < 0).any():
        unknown = bytes(np.unique(text[codes < 0])).decode("latin-1")
        raise ValueError(f"not in the vocabulary '{vocabulary}': {unknown!r}")
    return codes
