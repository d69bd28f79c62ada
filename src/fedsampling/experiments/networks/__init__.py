"""Training of networks with the settings of an experiment."""
