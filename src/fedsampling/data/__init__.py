"""From files to clients, in the order of the flow.

:mod:`.sources` fetches and verifies official files, which :mod:`.datasets` read;
:mod:`.partitions` assigns the samples to clients, which gives a :mod:`.federated` dataset.
:mod:`.datasets` has one module per dataset, which chooses these steps.  :mod:`.user_data` makes a
federated dataset from users' own arrays and tables.
"""
