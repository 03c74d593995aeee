"""This machine and its kernel: clocks, control groups, networks, and what the doctor reports; knows no Kafka."""
