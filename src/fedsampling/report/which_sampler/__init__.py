"""The page "Which sampler?" and ``fedsampling rank``: samplers compared, and advice.

All numbers come from the CSV files that ``papers/crossmatrix`` draws.  :mod:`.comparison` has the
records and what follows from them, :mod:`.reading` reads them and the values of single clients,
:mod:`.advice` has the rule, and :mod:`.chooser` recommends samplers for a reader's situation.
"""
