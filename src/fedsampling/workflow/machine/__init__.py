"""Checks of a machine: ``doctor``, the first training on a GPU, recomputed published runs."""
