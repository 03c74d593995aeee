"""Checks that every implementation of a contract has to pass, and what tests need to inspect a machine."""
