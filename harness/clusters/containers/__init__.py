"""Servers in containers of a Docker engine, and what they need in it."""
