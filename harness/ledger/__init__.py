"""The files of a run: written so that they survive SIGKILL, and read with every value checked."""
