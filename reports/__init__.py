"""The HTML report; reads the files of run folders and nothing else."""
