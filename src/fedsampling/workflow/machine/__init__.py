"""Does this machine compute correctly?  ``doctor``, ``recheck``, and the check of a new GPU."""
