"""One client library a file, named as scenarios name it; each translates the errors of its library into outcomes in one table."""
