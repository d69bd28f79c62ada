"""Numerical methods of the samplers: optimisation over distributions, clustering."""
