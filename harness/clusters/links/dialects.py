"""How each kind of server is asked, port by port: what probes of links say there.

On the port of followers nobody listens unless the server leads. So a link between two ZooKeeper servers is asked on the
port of elections; the other one is asked as well where somebody listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.clusters.links.mesh import Port
from harness.kafka.protocol import raw_client, zookeeper

_API_VERSIONS = 18  # the cheapest question that any Kafka server answers


@dataclass(frozen=True)
class Speech:
    """`ask` is one question on a connection of its own. A conversation begins with `hello`, which has so many answers of
    its own, and goes on with questions of any length; every answer has its size in front.
    """

    ask: Callable[[raw_client.Address, float], None]
    opening: Callable[[], bytes]  # the same question, as what is said first on a connection
    nonsense: bytes  # a server that reads it closes the connection at once
    question: Callable[[int], bytes]  # with so many bytes that are not read
    hello: Callable[[], bytes] = bytes
    hello_answers: int = 0
    one_by_one: bool = False  # of several questions at once, some would go unanswered


KAFKA = Speech(
    raw_client.api_versions,
    lambda: raw_client.request(_API_VERSIONS, 0, b""),
    b"\xff\xff\xff\xff",  # a size that no request has
    lambda padding: raw_client.request(_API_VERSIONS, 0, bytes(padding)),
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
