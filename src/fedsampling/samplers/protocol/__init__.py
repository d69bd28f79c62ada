"""What every sampler is: its base class, the data it exchanges with the server, its settings."""
