"""The page "Which sampler?" and ``fedsampling rank``: samplers compared, and advice.

All numbers come from the CSV files that ``papers/crossmatrix`` draws.  :mod:`.comparison` reads
them, :mod:`.advice` has the rule, and :mod:`.chooser` recommends samplers for a reader's situation.
"""
