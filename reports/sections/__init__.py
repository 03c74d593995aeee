"""One section of the page per file, with a template of the same name; found by listing the folder."""
