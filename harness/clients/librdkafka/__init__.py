"""Shared by clients of librdkafka: settings and outcomes by mode, records as rows of the ledger, and calls that may never return."""
