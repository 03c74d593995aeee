"""One fault a file, named as users type it; modules with an underscore are for this folder only."""
