"""Measurements, each beside its baseline in the same run. `make bench` prints them and writes RESULTS.md."""
