"""Foundations: errors, files, random streams, records; imports no other package."""
