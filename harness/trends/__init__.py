"""Trends: one line for each judged run in a folder without a server, and what differs between sessions of runs."""
