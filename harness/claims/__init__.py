"""Statements about Kafka, each checked on a real cluster; the cases of this project are in `suites/claims/`."""
