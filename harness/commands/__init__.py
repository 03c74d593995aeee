"""One command a file; its file name is what users type after `./onceproof`."""
