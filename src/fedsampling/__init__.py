"""Client sampling in federated learning: five papers' tables, figures and claims, reproduced.

The stations of the pipeline, each importing only from those before it::

    errors, files, streams, specs <- datasets, partitions, models, theory <- samplers
        <- training <- evidence <- artefacts <- report <- cli
"""

__version__ = "0.1.0"
