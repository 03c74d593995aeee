"""What clients of librdkafka share: settings and outcomes by mode, and calls that may never return."""
