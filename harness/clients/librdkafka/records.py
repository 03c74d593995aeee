"""The fields of confluent-kafka's records."""

from __future__ import annotations

from confluent_kafka import Message

from harness.clients.shared.records import Getters

GETTERS = Getters(Message.partition, Message.offset, Message.key, Message.timestamp, Message.headers)
