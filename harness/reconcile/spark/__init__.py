"""Spark itself: its JVM, its session, its files, and how rows travel through it; judges nothing."""
