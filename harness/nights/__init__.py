"""Nights of chaos: drawn scenarios run on shared clusters, with a journal, replays and minimisation."""
