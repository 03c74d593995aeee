"""ZooKeeper servers and the brokers that register with them."""
