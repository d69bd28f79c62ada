#!/usr/bin/env python3
"""cancel.py NUMBER…: cancel jobs, for profile.yaml."""

import sys

from schedulers import cancel

cancel(sys.argv[1:])
