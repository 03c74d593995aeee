"""The power over single requests on their way to a broker: RequestHolding.

Only while requests are held does the lane's proxy lead through a holder (harness.clusters.links.request_holder). Inserting and
removing it closes the lane's connections to this broker, which clients open again: an open connection cannot be moved. A
permanent holder would keep them, but make the lane slower in every run.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from harness.clusters.base.composition import Power, Site
from harness.clusters.links.mesh import LANE_PORTS, Port
from harness.contracts import HeldRequests, Lane, Link, RequestHolding
from harness.errors import FaultError, WaitTimeout
from harness.kafka.protocol.security import encrypts
from harness.processes import child_process
from harness.waiting import wait_until

_ROOT = Path(__file__).resolve().parents[3]
_START_LIMIT_S = 15.0
_ANSWER_LIMIT_S = 120.0  # a release waits as long as the broker keeps answering


class Holding(Power):
    gives: ClassVar[type] = RequestHolding
    _holder: subprocess.Popen[bytes] | None = None
    _held_link: Link | None = None
    _last_state: Mapping[str, int] = {}

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        if not encrypts(site.security):
            return None
        return (
            f"requests are encrypted ({site.security}), so a proxy cannot recognise them;"
            " use --security plaintext or sasl_plaintext"
        )

    def hold_requests(self, how: HeldRequests) -> None:
        if how.lane is Lane.CONTROL:
            raise FaultError(
                f"requests to {self.name} on the control lane cannot be held: the lane has no proxy"
            )
        if self._held_link is not None:
            raise FaultError(f"requests to {self.name} are held already, on {self._held_link}")
        self._start_holder(how.lane)
        self._held_link = Link(how.lane.value, self.name)
        self._order_holder(do="hold", api_keys=list(how.api_keys), connections=how.connections)
        self.links_of_cluster.retarget(self._held_link, self.holder_listens())

    def release_requests(self) -> None:
        if self._held_link is None:
            return
        try:
            self._order_holder(do="release")
        finally:  # even if the holder died with all that it held, the lane has to be open again
            self.links_of_cluster.retarget(self._held_link, None)
            self._end_holder()
            self._held_link = None

    def held_requests(self) -> Mapping[str, int]:
        """Return counts: `connections` and `requests` now, `…_so_far`, `delivered`, `answered`, `undeliverable`.

        After the release these are the numbers of the last hold. `inserted` is the number of the broker's lanes that
        Toxiproxy leads through the holder.
        """
        if self._held_link is not None:
            self._order_holder(do="state")
        through = [link for link in self.links_of_cluster.retargeted() if link.destination == self.name]
        return {**self._last_state, "inserted": len(through)}

    def residue(self) -> list[str]:
        """List a running holder; the cluster's links list the proxies that lead to another address."""
        runs = self._holder is not None and self._holder.poll() is None
        return [*super().residue(), *([f"a holder of requests runs at {self.name}"] if runs else [])]

    def closed(self) -> None:
        self._end_holder()
        super().closed()

    def holder_listens(self) -> str:
        """Return the holder's address for the proxy of a lane."""
        return f"{self.address}:{Port.HOLDER:d}"

    def behind_holder(self, lane: Lane) -> str:
        """Return the broker's address for the holder."""
        return f"{self.address}:{LANE_PORTS[lane]:d}"

    def _start_holder(self, lane: Lane) -> None:
        control = f"{self.address}:{Port.HOLDER_CONTROL:d}"
        places = [self.holder_listens(), self.behind_holder(lane), control]
        log = self.folder / "holder.log"
        self._holder = child_process.spawn(
            [sys.executable, "-m", "harness.clusters.links.request_holder", *places, self.folder],
            log=log,
            cwd=_ROOT,
            pidfile=self.folder / "holder.pid",
        )
        try:
            wait_until(self._holder_answers, _START_LIMIT_S, "it does not answer")
        except WaitTimeout as error:
            self._end_holder()
            raise FaultError(
                f"the holder of requests at {self.name} did not start: {error}; see {log}"
            ) from error

    def _end_holder(self) -> None:
        if self._holder is not None:
            child_process.end(self._holder)
            (self.folder / "holder.pid").unlink(missing_ok=True)
            self._holder = None

    def _holder_answers(self) -> bool:
        try:
            self._order_holder(do="state")
        except FaultError:
            return False
        return True

    def _order_holder(self, **order: Any) -> None:
        """Send an order and keep the state that the holder returns."""
        try:
            with socket.create_connection(
                (self.address, int(Port.HOLDER_CONTROL)), _ANSWER_LIMIT_S
            ) as connection:
                connection.sendall(json.dumps(order).encode() + b"\n")
                answer = connection.makefile("rb").readline()
            self._last_state = json.loads(answer)
        except (OSError, ValueError) as error:
            raise FaultError(
                f"the holder of requests at {self.name} does not answer {order['do']}: {error}"
            ) from error
