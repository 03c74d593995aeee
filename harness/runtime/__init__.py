"""The process that runs a command: its limits, signals, exit codes, terminal and cache folder."""
