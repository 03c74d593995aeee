"""Links between nodes and clients, cut, shaped and probed; knows no server process."""
