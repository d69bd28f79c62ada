"""Samplers: one module per family, pure functions first, each citing its equations."""
