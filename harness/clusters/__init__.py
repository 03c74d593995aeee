"""One kind of cluster a file, named as `--cluster` names it; the folders have what several kinds share."""
