"""Numbers from runs: rates with intervals, and tests whether two sets of runs differ beyond noise; pure, knows no run."""
