"""The HTML report; reads the files of run folders; commands hand over what else it shows."""
