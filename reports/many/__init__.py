"""Pages about many runs: nights, comparisons, groups of findings, coverage, and what keeps a page of 500 runs small."""
