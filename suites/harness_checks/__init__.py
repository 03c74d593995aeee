"""Checks that the harness itself works on real Kafka; they test no promise of Kafka."""
