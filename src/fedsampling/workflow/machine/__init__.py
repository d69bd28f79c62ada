"""Does this machine compute correctly?  ``doctor`` and ``recheck``."""
