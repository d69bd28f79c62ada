"""Artefacts: one module per paper, from summaries to figures, tables and verdicts."""
