"""Checks of what a sampler returns: in every round of training, and before its first use."""
