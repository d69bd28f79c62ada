"""Six tables of UCI and Statlog as CRAN's packages publish them.

References
----------
Frey, Slate: Letter recognition using Holland-style adaptive classifiers. Machine Learning 1991.
King, Feng, Sutherland: StatLog: comparison of classification algorithms on large real-world
problems. Applied Artificial Intelligence 1995 (Satellite, Shuttle).
Noordewier, Towell, Shavlik: Training knowledge-based neural networks to recognize genes in DNA
sequences. NIPS 1990.
Hastie, Tibshirani, Friedman: The Elements of Statistical Learning. Springer 2001, section 9.1.2
(Spam).
Deterding: Speaker normalisation for automatic speech recognition. PhD thesis, Cambridge 1989
(Vowel).
"""

from typing import ClassVar

from fedsampling.data.datasets.tables import Layout, TableData
from fedsampling.data.partitions.partition import LabelPartition


class Dna(TableData, name="dna"):
    """Primate splice junctions of UCI, as Statlog coded them."""

    # Three binary attributes for each of 60 nucleotides.
    layout: ClassVar[Layout] = Layout("DNA", "Class", features=180, per_label=(767, 765, 1654))

    partition: LabelPartition


class Letter(TableData, name="letter"):
    """Letter recognition of UCI."""

    # Attributes of images of the capital letters in 20 distorted fonts.
    layout: ClassVar[Layout] = Layout(
        "LetterRecognition",
        "lettr",
        features=16,
        per_label=(
            789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792,
            783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734,
        ),
    )  # fmt: skip

    partition: LabelPartition


class Satellite(TableData, name="satellite"):
    """Statlog's Landsat data of UCI."""

    # Kinds of soil, from four spectral bands of 3 × 3 pixels.
    layout: ClassVar[Layout] = Layout(
        "Satellite", "classes", features=36, per_label=(1533, 703, 1358, 626, 707, 1508)
    )

    partition: LabelPartition


class Shuttle(TableData, name="shuttle"):
    """Statlog's shuttle data of UCI."""

    # States of a radiator; three of the seven labels have 50 samples or fewer.
    layout: ClassVar[Layout] = Layout(
        "Shuttle", "Class", features=9, per_label=(45586, 50, 171, 8903, 3267, 10, 13)
    )

    partition: LabelPartition


class Spam(TableData, name="spam"):
    """Spambase of UCI."""

    # Frequencies of words and characters in e-mails.
    layout: ClassVar[Layout] = Layout("spam", "type", features=57, per_label=(2788, 1813))

    partition: LabelPartition


class Vowel(TableData, name="vowel"):
    """Vowel recognition of UCI; owners are the speakers."""

    # 15 speakers, 11 vowels of British English, 6 recordings of each vowel.
    layout: ClassVar[Layout] = Layout(
        "Vowel", "Class", features=9, per_label=(90,) * 11, owner="V1", owners=15
    )
    published: ClassVar[int | None] = 15
