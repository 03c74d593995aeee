"""Tests that the recipes of docs/ci do what they say, on real clusters."""
