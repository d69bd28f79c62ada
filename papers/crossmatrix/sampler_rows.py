"""Tables of the cross matrix with a row for each sampler and a column for each dataset."""

import pandas as pd

from fedsampling.report.names import display_name


def label(sampler: str) -> str:
    """Return the short name of a sampler."""
    return display_name(sampler).short


def by_dataset(cells: pd.DataFrame) -> pd.DataFrame:
    """Arrange cells as a table of samplers, ``scheme``, and datasets, ``title``."""
    wide = cells.pivot(index="scheme", columns="title", values="cell").fillna("–")
    wide = wide.sort_index(key=lambda names: names.str.casefold())[cells["title"].unique()]
    return wide.rename_axis(columns=None).reset_index()
