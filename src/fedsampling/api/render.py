"""A figure of the pipeline, with the look that a paper needs: :func:`render`."""

from collections.abc import Mapping
from pathlib import Path

from fedsampling.api.opening import open_results


def render(
    paper: str,
    artefact: str,
    *,
    results: str | Path = "results",
    size: tuple[float, float] | None = None,
    font: float | None = None,
    labels: Mapping[str, str] | str | Path | None = None,
    out: str | Path | None = None,
) -> Path:
    """Draw a figure of the pipeline again, with its size, font and labels.

    Parameters
    ----------
    paper, artefact : str
        Such as ``"fraboni2021clustered"`` and ``"figure2"``; ``fedsampling list artefacts`` lists
        all.
    results : str or Path
        Folder with the results of a call of Snakemake.
    size : (float, float), optional
        Width and height in inches.
    font : float, optional
        Size of the text in points.
    labels : mapping of str to str, or path of a YAML file, optional
        Your labels by those that the figure shows.  A legend below the panels begins with them, in
        this order.
    out : str or Path, optional
        The file: .pdf, .svg or .png; by default, ``figures/PAPER-ARTEFACT.pdf`` in `results`.

    Returns
    -------
    Path
        The file.  The report's files of the figure stay as they are.

    Raises
    ------
    InputError
        If a name is unknown, its runs are not finished, the artefact is a table, or a setting is
        invalid.

    Examples
    --------
    >>> import fedsampling as fs
    >>> path = fs.render(
    ...     "rizk2022importance", "figure1", size=(3.3, 2.2), font=8
    ... )  # doctest: +SKIP
    """
    from fedsampling.report.drawing.look import Look, read_labels
    from fedsampling.workflow.draw import render as render_one

    project = open_results(results)
    if isinstance(labels, str | Path):
        labels = read_labels(Path(labels))
    look = Look(size, font, labels or {})
    return render_one(paper, artefact, project, look, None if out is None else Path(out))
