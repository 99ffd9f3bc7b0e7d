"""Benchmarks of grammaton beside its peers; `python -m bench.NAME --help` tells the options."""
