"""Delays: the seconds that each client takes in each round.

Each delay model is a :class:`~fedsampling.clients.delays.delays.DelayModel` in a file of this
folder and creates :class:`~fedsampling.clients.delays.delays.Delays`.  Samplers that select by
delay see the mean delays; the clock of a training run uses the delays of each round.
:mod:`fedsampling.clients.mesh` simulates the network of :mod:`nycmesh`.
"""
