"""Links between nodes with separate networks (containers), cut by nftables inside these networks.

The rules are in harness.clusters.links.packet_rules. Connections from before a cut are cut like new ones. They continue
after it, as soon as TCP retransmits what was lost: that may take as long again as the cut lasted.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import TypeVar

from harness.clusters.links.dialects import speech_of
from harness.clusters.links.mesh import Port, ways
from harness.clusters.links.one_way_probe import each_way
from harness.clusters.links.packet_rules import TABLE, End, rules_at, ruleset
from harness.clusters.links.probe import listens, long_question, talk
from harness.contracts import Cut, Direction, Ending, Link, Questions, Talk
from harness.errors import FaultError
from harness.kafka.protocol import raw_client
from harness.machine.network_namespace import in_network_of
from harness.provision.nft import nft

T = TypeVar("T")
PROBE_LIMIT_S = 1.0
_NFT_LIMIT_S = 10.0


def trouble() -> str | None:
    """Return why links between containers cannot be cut by this user; None if they can."""
    return None if os.geteuid() == 0 else "only root can cut links between containers"


class PacketLinks:
    """All links between some nodes. Each change is recorded under the name of its maker, so that several makers can work
    on one link and each undoes only its own changes.
    """

    def __init__(self, ends: Mapping[str, End]) -> None:
        self._ends = dict(ends)
        self._links = {
            link: ports
            for source in self._ends.values()
            for peer in self._ends.values()
            for link, ports in ways(source.member, peer.member)
        }
        self._made: dict[str, list[Cut]] = {}
        self._lock = threading.Lock()
        self._probing = {name: threading.Lock() for name in self._ends}
        self._program = str(nft())

    def of(self, name: str) -> Sequence[Link]:
        return [link for link in self._links if name in (link.source, link.destination)]

    def sever(self, cuts: Sequence[Cut], by: str) -> None:
        for cut in cuts:
            self._must_be_there(cut.link)
        with self._lock:
            self._made.setdefault(by, []).extend(cuts)
            self._set_rules(cuts)

    def take_back(self, by: str) -> None:
        """Undo every change made under this name."""
        with self._lock:
            cuts = self._made.pop(by, [])
            try:
                self._set_rules(cuts)
            except BaseException:
                self._made[by] = cuts  # so that the caller can retry
                raise

    def doers(self) -> list[str]:
        """Return the names under which changes are in place now."""
        with self._lock:
            return list(self._made)

    def renew(self, name: str) -> None:
        """Set the rules again in the node's new network, for example after a restart."""
        with self._lock:
            self._set_rules_at(self._ends[name])

    def passes(self, link: Link) -> Mapping[Direction, bool]:
        """Probe from within the source's network; nothing passes from or to a node that does not run."""
        each = dict.fromkeys((Direction.REQUESTS, Direction.ANSWERS), False)
        with suppress(ProcessLookupError):
            probes = self._from_source(link, lambda: self._probes(link))
            each = {way: all(probe[way] for probe in probes) for way in each}
        return {**each, Direction.BOTH: all(each.values())}

    def talk(self, link: Link, questions: Questions) -> Talk:
        try:
            speech = speech_of(self._port(link))
            return self._from_source(link, lambda: talk(self._place(link), questions, speech))
        except ProcessLookupError:
            return Talk(Ending.CLOSED, 0, 0, 0, 0.0)

    @contextmanager
    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> Iterator[Callable[[float], bool]]:
        asked = long_question(self._place(link), topic, partition, wait_s)
        try:
            answered = self._from_source(link, asked.__enter__)
        except ProcessLookupError as error:
            raise raw_client.ClosedError(str(error)) from error
        try:
            yield answered
        finally:
            asked.__exit__(None, None, None)

    def residue(self) -> list[str]:
        """List the rules of our table that the kernel has now, whatever process made them."""
        return [f"{end.name}: {rule}" for end in self._ends.values() for rule in self._listed(end)]

    def _set_rules(self, cuts: Sequence[Cut]) -> None:
        """Set the rules at every end of these cuts in parallel, first where most of them end."""
        names = [name for cut in cuts for name in (cut.link.source, cut.link.destination)]
        concerned = sorted(dict.fromkeys(names), key=names.count, reverse=True)
        with ThreadPoolExecutor(max(1, len(concerned)), "nft") as pool:
            done = [pool.submit(self._set_rules_at, self._ends[name]) for name in concerned]
        for each in done:
            each.result()

    def _set_rules_at(self, end: End) -> None:
        rules = [
            rule
            for by, cuts in self._made.items()
            for cut in cuts
            for rule in rules_at(end, cut, self._ends, self._links[cut.link], by)
        ]
        try:
            done = self._nft(end, ["-f", "-"], ruleset(rules))
        except ProcessLookupError:
            return  # no network, no rules; see `renew`
        if done.returncode != 0:
            raise FaultError(
                f"links of {end.name} cannot be cut or mended by nft: {_first_line(done.stderr)}"
            )

    def _listed(self, end: End) -> list[str]:
        try:
            done = self._nft(end, ["-j", "list", "table", *TABLE.split()])
        except ProcessLookupError:
            return []
        if done.returncode != 0:
            if "No such file or directory" in done.stderr:
                return []
            raise FaultError(f"rules of {end.name} cannot be read by nft: {_first_line(done.stderr)}")
        rules = [item["rule"] for item in json.loads(done.stdout)["nftables"] if "rule" in item]
        names = [rule.get("comment", "a rule without a name") for rule in rules if rule["chain"] != "data"]
        return names or ["an empty table"]

    def _nft(self, end: End, arguments: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [self._program, *arguments],
                input=text,
                capture_output=True,
                text=True,
                timeout=_NFT_LIMIT_S,
                check=False,
            )

        return _inside(end, run)

    def _from_source(self, link: Link, act: Callable[[], T]) -> T:
        self._must_be_there(link)
        return _inside(self._ends[link.source], act)

    def _probes(self, link: Link) -> list[Mapping[Direction, bool]]:
        """Probe each port of the link. The port for followers counts only where a leading ZooKeeper server listens."""
        ports, name = self._links[link], link.destination
        # A connection whose question was lost blocks others on the election port until it times out.
        with self._probing[name] if Port.ZOOKEEPER_ELECTION in ports else nullcontext():
            first, *others = ((port, self._each_way(link, port)) for port in ports)
        return [first[1], *(passes for port, passes in others if self._listens(name, port))]

    def _each_way(self, link: Link, port: Port) -> Mapping[Direction, bool]:
        made = [cut for cuts in list(self._made.values()) for cut in cuts if cut.link == link]
        meant = all(cut.direction is Direction.REQUESTS for cut in made)
        place = (self._ends[link.destination].address, int(port))
        return each_way(place, PROBE_LIMIT_S, speech_of(port), meant=meant)

    def _listens(self, name: str, port: Port) -> bool:
        """Return whether the node listens on the port, asked from within its own network, past all cuts."""
        end = self._ends[name]
        return _inside(end, lambda: listens((end.address, port), PROBE_LIMIT_S))

    def _port(self, link: Link) -> Port:
        """Return the port of the link that is probed first."""
        self._must_be_there(link)
        return self._links[link][0]

    def _place(self, link: Link) -> raw_client.Address:
        return self._ends[link.destination].address, int(self._port(link))

    def _must_be_there(self, link: Link) -> None:
        if link not in self._links:
            raise FaultError(f"no link {link}; there are: {', '.join(map(str, self._links))}")


def _inside(end: End, act: Callable[[], T]) -> T:
    """Act inside the node's network; raise ProcessLookupError if the node does not run."""
    pid = end.pid()
    if pid is None:
        raise ProcessLookupError(f"{end.name} does not run")
    return in_network_of(pid, act)


def _first_line(output: str) -> str:
    return next(iter(output.splitlines()), "it printed nothing")
