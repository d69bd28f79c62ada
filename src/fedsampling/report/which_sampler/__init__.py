"""The page "Which sampler?" and ``fedsampling rank``: samplers compared, and advice.

All numbers come from the CSV files that ``papers/crossmatrix`` draws.  :mod:`.comparison` has the
records and what follows from them, :mod:`.reading` reads them, :mod:`.decision_map` reads the
benchmark's advice, :mod:`.chooser` recommends samplers for a reader's situation, :mod:`.clients`
reads the values of single clients, and :mod:`.terminal` writes for the terminal.
"""
