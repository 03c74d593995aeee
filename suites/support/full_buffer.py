"""A producer that fills its buffer, prints how many records it has, and waits to be killed.

Used by suites/claims/batches.py as `python -m suites.support.full_buffer TOPIC`, with the client's settings as JSON on stdin.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Producer

RECORDS = 5000
FOR_EVER_S = 600.0


def main(topic: str) -> None:
    producer = Producer(json.load(sys.stdin))
    for number in range(RECORDS):
        producer.produce(topic, value=b"%d" % number)
    print(f"{len(producer)} records buffered", flush=True)
    time.sleep(FOR_EVER_S)


if __name__ == "__main__":
    main(sys.argv[1])
