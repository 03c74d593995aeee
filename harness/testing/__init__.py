"""Checks that every implementation of a contract has to pass, and functions for tests that inspect a machine."""
