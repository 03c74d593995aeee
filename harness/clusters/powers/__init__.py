"""One power over a node a file, mixed into the nodes of clusters."""
