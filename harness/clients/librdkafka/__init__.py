"""Shared by clients of librdkafka: the consumer, settings and outcomes by mode, the fields of records, and calls that may never return."""
