"""Clusters, brokers and checks that several suites share."""
