"""Samplers of users: the form for one run, and files that define samplers."""
