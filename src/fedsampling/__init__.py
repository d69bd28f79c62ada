"""Client sampling in federated learning: five papers' tables, figures and claims, reproduced.

As a library::

    import fedsampling as fs

    data = fs.load("mnist", fs.partitions.AllByDirichlet(alpha=0.1, clients=100))
    scheme = fs.scheme("clustered_similarity", m=10)
    history = fs.train(
        data, scheme, model="mlp", steps=50, batch=50, step=0.01, rounds=200, seeds=3
    )

=================  ===============================================================================
`load`             clients of a dataset, with a partition
`federated`        clients of your own arrays, by owner or by a partition
`from_clients`     the same, from one pair (x, y) per client
`from_frame`       the same, from a pandas table
`from_huggingface` the same, of a ``datasets.Dataset``
`partitions`       the partitions, as records: ``fs.partitions.ByDigit(clients_per_label=10)``
`scheme`           a sampler by its name and settings
`check_sampler`    checks that a sampler works as declared: slots, bias, observations, memory
`train`            trains as in the papers' runs; returns a tidy table
`compare`          trains with several samplers: a table with intervals, ranks, significance
`tune`             chooses each sampler's settings on a holdout, among the same trials
`by_client`        participation and accuracy of each client, from a history
`left_out`         who is left out: a row for each sampler, from their histories
`plot`             histories against rounds, bits or seconds
`to_latex`         a table for a paper: booktabs, the best in bold
`samplers`         ``fs.samplers()`` lists all samplers
`datasets`         all datasets, as a table
`summary`          the published runs of a paper's experiment, or your own, as a table
`render`           a figure of the pipeline in the size, font and labels of your paper
`Sampler`          base class of your own sampler; its ``select`` sees one run
`Scheme`           the stacked form: ``select`` sees all runs at once, which is faster
`Slots`            return value of a stacked ``select``
`InputError`       error for invalid settings: one line each
=================  ===============================================================================

docs/tutorial.ipynb shows them, docs/add-a-sampler.md adds a sampler, docs/adapters.md uses the
samplers in other frameworks, and docs/architecture.md describes the code.  Everything is imported
on first use.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# With this mode, the order of summation in a product does not depend on memory alignment.  MKL,
# which PyTorch uses, reads it at its first product; a mode set by the user is kept.
os.environ.setdefault("MKL_CBWR", "AUTO")

__version__ = "0.1.0"

# The public names, by module; a test compares them with those that type checkers see.
_PUBLIC = {
    "InputError": "base.errors",
    "Sampler": "samplers.users.one_run",
    "Scheme": "samplers.protocol.base",
    "Slots": "samplers.protocol.slots",
    "by_client": "evidence.fairness",
    "check_sampler": "samplers.checks.check",
    "compare": "api.compare",
    "datasets": "api.load",
    "federated": "data.user_data",
    "from_clients": "data.user_clients",
    "from_frame": "data.user_frames",
    "from_huggingface": "data.user_frames",
    "left_out": "evidence.fairness",
    "load": "api.load",
    "partitions": "",  # a module
    "plot": "report.drawing.plot",
    "render": "api.render",
    "samplers": "",  # a module, which lists its members when it is called
    "scheme": "samplers.protocol.base",
    "summary": "api.summary",
    "to_latex": "report.drawing.latex",
    "train": "api.train",
    "tune": "api.tune",
}
__all__ = [*_PUBLIC]

if TYPE_CHECKING:  # for completion in editors, and for type checkers
    import pandas as pd

    from fedsampling.api.compare import compare as compare
    from fedsampling.api.load import datasets as datasets
    from fedsampling.api.load import load as load
    from fedsampling.api.render import render as render
    from fedsampling.api.summary import summary as summary
    from fedsampling.api.train import train as train
    from fedsampling.api.tune import tune as tune
    from fedsampling.base.errors import InputError as InputError
    from fedsampling.data import partitions as partitions
    from fedsampling.data.user_clients import from_clients as from_clients
    from fedsampling.data.user_data import federated as federated
    from fedsampling.data.user_frames import from_frame as from_frame
    from fedsampling.data.user_frames import from_huggingface as from_huggingface
    from fedsampling.evidence.fairness import by_client as by_client
    from fedsampling.evidence.fairness import left_out as left_out
    from fedsampling.report.drawing.latex import to_latex as to_latex
    from fedsampling.report.drawing.plot import plot as plot
    from fedsampling.samplers.checks.check import check_sampler as check_sampler
    from fedsampling.samplers.protocol.base import Scheme as Scheme
    from fedsampling.samplers.protocol.base import scheme as scheme
    from fedsampling.samplers.protocol.slots import Slots as Slots
    from fedsampling.samplers.users.one_run import Sampler as Sampler

    def samplers() -> pd.DataFrame:
        """List all samplers: name, settings, needs, whether unbiased, and a description."""

else:

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "partitions":
            return import_module(f"{__name__}.data.partitions")
        if name == "samplers":
            return import_module(f"{__name__}.samplers")
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
