"""The public Python interface: load clients, choose a sampler, train, compare and tune samplers."""
