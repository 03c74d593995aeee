"""Tests of each kind of cluster on real brokers: the check of its contract, its start, its end, and what a killed harness leaves."""
