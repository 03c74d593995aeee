"""The parts of a generated run folder: its history, what is planted in it, its group, and its journals."""
