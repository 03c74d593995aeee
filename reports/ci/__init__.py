"""The result of many runs as CI systems read it: a JUnit file, a Markdown summary, annotations."""
