"""A gate before the port on which a ZooKeeper leader accepts its followers: followers that come too early wait.

An elected server begins to listen a moment after its followers connect. If refused, they would retry. But a proxy accepts
every connection and closes it when its upstream does not listen. The followers then start another election, and the next
leader waits for them until it times out. So proxies lead to this gate, which retries in their place.

`python -m harness.clusters.links.follower_gate LISTEN UPSTREAM`, each as HOST:PORT; one for each server, as long as its cluster runs.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress

_PATIENCE_S = 3.0
_AGAIN_S = 0.02
_READ_BYTES = 64 * 1024


async def main(listen: str, upstream: str) -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await _dial(upstream)
        if behind is not None:
            ways = [_pass(reader, behind[1]), _pass(behind[0], writer)]
            await asyncio.gather(*ways)
        writer.close()

    host, port = listen.split(":")
    async with await asyncio.start_server(take, host, int(port)) as server:
        await server.serve_forever()


async def _dial(upstream: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    host, port = upstream.split(":")
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            return await asyncio.open_connection(host, int(port))
        await asyncio.sleep(_AGAIN_S)
    return None


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side ends, then close both: servers of an ensemble do not half-close."""
    with suppress(OSError):
        while piece := await reader.read(_READ_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
