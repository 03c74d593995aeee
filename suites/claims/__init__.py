"""Statements that teams believe about Kafka, one group per file: each is checked on a real cluster."""
