"""Shared by clients of librdkafka: settings and outcomes by mode, and calls that may never return."""
