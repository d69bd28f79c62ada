"""Names of the cross matrix: the paper that compares all samplers on all datasets."""

CROSS_MATRIX = "crossmatrix"
# Its experiments have prefixes.
BENCH = "bench_"  # the benchmark on each dataset
CLIENTS = "clients_"  # each client is recorded
REFERENCE = "md"  # sampler that sets the targets and has speed-up 1
FULL = "full"  # full participation: the upper limit in rounds, selects no clients
MEASURES = ("rounds", "bits", "seconds")
