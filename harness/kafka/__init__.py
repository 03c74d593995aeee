"""Speaks Kafka and reads its log files; knows no kind of cluster."""
