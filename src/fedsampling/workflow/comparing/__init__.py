"""Comparison of users' samplers with all others: ``fedsampling compare``."""
