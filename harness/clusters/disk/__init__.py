"""Disks of brokers that can be broken, by FUSE or by Byteman; knows no cluster."""
