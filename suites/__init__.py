"""Tests of Kafka's promises on real clusters, for users."""
