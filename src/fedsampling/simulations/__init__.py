"""From checked settings to run tables: one module per kind of experiment."""
