"""Hunts: repeated runs that search for a suspected defect, with a rate and evidence; the hunts of this project are in `suites/hunts/`."""
