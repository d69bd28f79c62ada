"""Every file that comes from outside: where it is, how to know it, and whose it is.

:func:`fedsampling.datasets.fetch.fetch` obeys this table; a new dataset adds its files here.
"""

from dataclasses import dataclass

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"

_IJCNN1_LICENCE = "none stated by the publisher; competition data, so not shipped with this package"

_IJCNN1_CITATION = (
    "D. Prokhorov. IJCNN 2001 neural network competition. Slide presentation, IJCNN 2001. "
    "Features as transformed in C.-C. Chang and C.-J. Lin. IJCNN 2001 challenge: generalization "
    "ability and text decoding. IJCNN 2001."
)


@dataclass(frozen=True)
class Source:
    """One file as its publisher made it, known by its content and not by its packing.

    Parameters
    ----------
    file : str
        Name of the decompressed file.
    dataset : str
        Its folder in the cache and in a mirror.
    urls : tuple of str
        In order of preference; the suffix tells the compression (.xz, .bz2 or none).
    size : int
        Bytes of the decompressed content; nothing larger is ever unpacked.
    checksum : str
        Of the decompressed content, as ``"md5:<hexadecimal digits>"`` or ``"sha256:..."``.
    licence : str
    citation : str
    becomes : str
        What the pipeline makes of it.
    """

    file: str
    dataset: str
    urls: tuple[str, ...]
    size: int
    checksum: str
    licence: str
    citation: str
    becomes: str


SOURCES: dict[str, Source] = {
    source.file: source
    for source in (
        Source(
            file="ijcnn1.tr",
            dataset="ijcnn1",
            urls=(f"{_LIBSVM}/ijcnn1.tr.bz2",),
            size=5_489_789,
            checksum="md5:81bd4e0d591056d8099160fa06c079a0",
            licence=_IJCNN1_LICENCE,
            citation=_IJCNN1_CITATION,
            becomes="35,000 training samples of 22 attributes, shared out to the clients",
        ),
        Source(
            file="ijcnn1.val",
            dataset="ijcnn1",
            urls=(f"{_LIBSVM}/ijcnn1.val.bz2",),
            size=2_355_088,
            checksum="md5:f5814859e3da7920b36f709a7234d5c2",
            licence=_IJCNN1_LICENCE,
            citation=_IJCNN1_CITATION,
            becomes="14,990 validation samples; rizk2022importance does not use them",
        ),
        Source(
            file="ijcnn1.t",
            dataset="ijcnn1",
            urls=(f"{_LIBSVM}/ijcnn1.t.bz2",),
            size=14_213_968,
            checksum="md5:8abe953368ee19cc41e5bb63b5f7abfc",
            licence=_IJCNN1_LICENCE,
            citation=_IJCNN1_CITATION,
            becomes="91,701 test samples",
        ),
    )
}
