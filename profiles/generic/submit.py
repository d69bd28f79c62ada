#!/usr/bin/env python3
"""submit.py SCRIPT: submit a job, for profile.yaml."""

import sys

from schedulers import submit

print(submit(sys.argv[1]))
