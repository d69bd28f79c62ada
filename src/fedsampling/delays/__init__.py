"""Delays: how many seconds each client takes in each round.

Two models, :mod:`synthetic` and :mod:`nycmesh` (positions from :mod:`mesh`, path loss from
:mod:`propagation`, what is open from :mod:`parameters`), make the same
:class:`~fedsampling.delays.delays.Delays`; a scheme that selects by delay sees its means, the
clock of a training run its rounds.  :mod:`reference` holds published delays to compare with.
"""
