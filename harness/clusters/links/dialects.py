"""The protocols of the servers, by port: the requests that probes of links send there.

A ZooKeeper server listens on its port for followers only while it leads. So a link between two ZooKeeper servers is probed
on the election port, and on the port for followers only where the server listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.clusters.links.mesh import Port
from harness.kafka.protocol import raw_client, zookeeper


@dataclass(frozen=True)
class Speech:
    """The protocol of a port. `ask` sends one question on its own connection. A conversation begins with `hello`, which
    has its own number of answers, and continues with questions of any length; every answer begins with its size.
    """

    ask: Callable[[raw_client.Address, float], None]
    opening: Callable[[], bytes]  # the same question, as the first bytes on a connection
    nonsense: bytes  # a server that reads it closes the connection at once
    question: Callable[[int], bytes]  # with that many bytes of padding
    hello: Callable[[], bytes] = bytes
    hello_answers: int = 0
    one_by_one: bool = False  # of several questions at once, some would go unanswered


KAFKA = Speech(
    raw_client.api_versions,
    lambda: raw_client.request(raw_client.API_VERSIONS.key, 0, b""),
    b"\xff\xff\xff\xff",  # a size that no request has
    lambda padding: raw_client.request(raw_client.API_VERSIONS.key, 0, bytes(padding)),
)
ZOOKEEPER = Speech(
    zookeeper.are_you_ok,
    lambda: zookeeper.ARE_YOU_OK,
    zookeeper.NONSENSE,
    zookeeper.session_question,
    zookeeper.session_hello,
    hello_answers=1,
)
ELECTION = Speech(
    zookeeper.ask_vote,
    lambda: zookeeper.vote_hello() + zookeeper.vote_question(),
    zookeeper.NONSENSE,
    zookeeper.vote_question,
    zookeeper.vote_hello,
    one_by_one=True,
)
FOLLOWING = Speech(
    zookeeper.ask_to_follow,
    zookeeper.follow_question,
    zookeeper.NONSENSE,
    zookeeper.vote_question,
    one_by_one=True,
)


def speech_of(port: Port) -> Speech:
    return _OTHERS.get(port, KAFKA)


_OTHERS = {
    Port.ZOOKEEPER: ZOOKEEPER,
    Port.ZOOKEEPER_ELECTION: ELECTION,
    Port.ZOOKEEPER_PEER: FOLLOWING,
}
