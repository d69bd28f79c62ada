"""Names shared by the cross matrix (``papers/crossmatrix``) and the code that reads its results.

``fedsampling compare`` and the page "Which sampler?" read them.
"""

PAPER = "crossmatrix"
TUNING = "tuning_"  # prefix of the experiments that tune samplers, one for each dataset
BENCH = "bench_"  # prefix of the benchmark's experiments, one for each dataset
CLIENTS = "clients_"  # prefix of the experiments that record each client
REFERENCE = "md"  # sampler that sets the targets and has speed-up 1
FULL = "full"  # full participation: the upper limit in rounds, selects no clients
MEASURES = ("rounds", "bits", "seconds")
