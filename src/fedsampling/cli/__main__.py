"""``python -m fedsampling.cli``: the same as ``fedsampling``."""

from fedsampling.cli import main

main()
