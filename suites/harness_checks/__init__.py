"""Whether the harness itself works on real Kafka; tests no promise of Kafka."""
