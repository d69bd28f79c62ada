#!/usr/bin/env python3
"""status.py NUMBER: print the state of a job, for profile.yaml."""

import sys

from schedulers import status

print(status(sys.argv[1]))
