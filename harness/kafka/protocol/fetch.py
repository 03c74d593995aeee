"""Read from one chosen broker by a single Fetch (harness.kafka.protocol.raw_client has the other requests)."""

from __future__ import annotations

from harness.kafka.protocol.call import Address, Api, WireError, call
from harness.kafka.protocol.codec import Reader, Writer

FETCH = Api("Fetch", 1, 4, 11, flexible=12)


def fetch(address: Address, topic: str, partition: int, offset: int, timeout_s: float) -> int:
    """Read from `offset` on at this broker; return the number of bytes: at least one whole batch, if there is one."""

    def body(version: int) -> Writer:
        made = FETCH.writer(version)
        made.put(
            "iiiib", -1, int(timeout_s * 1000), 1, 1, 0
        )  # a client; wait; least and most bytes; uncommitted
        if version >= 7:
            made.put("ii", 0, -1)  # no session

        def one(number: int) -> None:
            made.put("i", number)
            if version >= 9:
                made.put("i", -1)  # whatever epoch the leader is in now
            made.put("q", offset)
            if version >= 5:
                made.put("q", -1)  # the log start of followers
            made.put("i", 1)

        made.items([topic], lambda name: made.text(name).items([partition], one))
        if version >= 7:
            made.put("i", 0)  # no topic of a session is forgotten
        return made.text("") if version >= 11 else made  # no rack

    version, reader = call(address, FETCH, body, timeout_s)
    return _fetched(reader, version, topic)


def parse_fetch(answer: bytes, topic: str, version: int = 4) -> int:
    return _fetched(FETCH.reader(version, answer), version, topic)


def _fetched(reader: Reader, version: int, topic: str) -> int:
    reader.take("i")  # throttle time
    if version >= 7:
        error = reader.take("h")
        if error:
            raise WireError(f"a fetch from {topic} was refused: error {error}")
        reader.take("i")  # no session
    reader.count(), reader.text(), reader.count()  # one topic, one partition
    partition, error = reader.take("i"), reader.take("h")
    if error:
        raise WireError(f"a fetch from {topic}-{partition} was refused: error {error}")
    reader.take("q"), reader.take("q")  # high watermark, last stable offset
    if version >= 5:
        reader.take("q")  # log start
    reader.array(lambda: (reader.take("q"), reader.take("q")))  # aborted transactions
    if version >= 11:
        reader.take("i")  # another replica that is preferred
    return int(reader.take("i"))
