"""Numerical methods of the samplers: draws, optimisation over distributions, clustering."""
