"""The interface of samplers: one or many runs, users' files, memory and cost of a selection."""
