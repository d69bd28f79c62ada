"""The cross matrix by name: what its folder, ``papers/crossmatrix``, and its readers agree on.

Its readers are ``fedsampling compare`` and the page "Which scheme?".
"""

PAPER = "crossmatrix"
TUNING = "tuning_"  # begins the name of the experiment that tunes a set
LARGER = "long_"  # begins the names of what two processor cores make at paper scale
REFERENCE = "md"  # sets the targets, and is the unit of speed-ups
MEASURES = ("rounds", "bits", "seconds")
