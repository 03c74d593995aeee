"""What Kafka promises, tested on real clusters: users run these."""
