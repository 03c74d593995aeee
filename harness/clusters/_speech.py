"""How each kind of server is asked, port by port: what probes of links say there.

On the port of followers nobody listens unless the server leads. So a link between two ZooKeeper servers is asked on the
port of elections; the other one is asked as well where somebody listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness import wire, wire_zookeeper
from harness.clusters._mesh import Port

_API_VERSIONS = 18  # the cheapest question that any Kafka server answers


@dataclass(frozen=True)
class Speech:
    """`ask` is one question on a connection of its own. A conversation begins with `hello`, which has so many answers of
    its own, and goes on with questions of any length; every answer has its size in front.
    """

    ask: Callable[[wire.Address, float], None]
    opening: Callable[[], bytes]  # the same question, as what is said first on a connection
    nonsense: bytes  # a server that reads it closes the connection at once
    question: Callable[[int], bytes]  # with so many bytes that are not read
    hello: Callable[[], bytes] = bytes
    hello_answers: int = 0
    one_by_one: bool = False  # of several questions at once, some would go unanswered


KAFKA = Speech(
    wire.api_versions,
    lambda: wire.request(_API_VERSIONS, 0, b""),
    b"\xff\xff\xff\xff",  # a size that no request has
    lambda padding: wire.request(_API_VERSIONS, 0, bytes(padding)),
)
ZOOKEEPER = Speech(
    wire_zookeeper.are_you_ok,
    lambda: wire_zookeeper.ARE_YOU_OK,
    wire_zookeeper.NONSENSE,
    wire_zookeeper.session_question,
    wire_zookeeper.session_hello,
    hello_answers=1,
)
ELECTION = Speech(
    wire_zookeeper.ask_vote,
    lambda: wire_zookeeper.vote_hello() + wire_zookeeper.vote_question(),
    wire_zookeeper.NONSENSE,
    wire_zookeeper.vote_question,
    wire_zookeeper.vote_hello,
    one_by_one=True,
)
FOLLOWING = Speech(
    wire_zookeeper.ask_to_follow,
    wire_zookeeper.follow_question,
    wire_zookeeper.NONSENSE,
    wire_zookeeper.vote_question,
    one_by_one=True,
)


def speech_of(port: Port) -> Speech:
    return _OTHERS.get(port, KAFKA)


_OTHERS = {
    Port.ZOOKEEPER: ZOOKEEPER,
    Port.ZOOKEEPER_ELECTION: ELECTION,
    Port.ZOOKEEPER_PEER: FOLLOWING,
}
