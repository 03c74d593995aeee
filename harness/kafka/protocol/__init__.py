"""A raw Kafka client: one request to one chosen server, in a version that both know."""
