"""A server that speaks as much Kafka as link probes need, and counts the bytes that arrive. Run as a program.

Three real brokers would take half a minute and a gigabyte, and would prove no more about packets.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping

from harness.clusters.links.mesh import Port
from harness.kafka.protocol import raw_client

FETCH, API_VERSIONS = 1, 18
PUT, COUNT, STREAM = 1000, 1001, 1002  # not Kafka's: bytes to count, their number, endless answers
CHUNK_BYTES = 4096
_EVERY_S = 0.01
_HEADER = struct.Struct(">hhih")  # api key, version, correlation, length of the client's name


class Server:
    def __init__(self) -> None:
        self._arrived = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                if size < _HEADER.size:
                    return
                await self._act(await reader.readexactly(size), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _act(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        api, _version, correlation, name = _HEADER.unpack_from(frame)
        body = frame[_HEADER.size + name :]
        if api == PUT:
            self._arrived += len(body)
        elif api == STREAM:
            while True:
                await _answer(writer, correlation, bytes(CHUNK_BYTES))
                await asyncio.sleep(_EVERY_S)
        elif api == FETCH:
            await asyncio.sleep(struct.unpack_from(">ii", body)[1] / 1000)
            await _answer(writer, correlation, b"")
        else:
            answers: Mapping[int, bytes] = {API_VERSIONS: bytes(6), COUNT: struct.pack(">q", self._arrived)}
            await _answer(writer, correlation, answers[api])


async def _answer(writer: asyncio.StreamWriter, correlation: int, body: bytes) -> None:
    writer.write(struct.pack(">ii", 4 + len(body), correlation) + body)
    await writer.drain()


def arrived(address: raw_client.Address, timeout_s: float) -> int:
    """Return the number of bytes that a server has received."""
    count: int = struct.unpack(">q", raw_client.ask(address, raw_client.request(COUNT, 0, b""), timeout_s))[0]
    return count


async def main() -> None:
    server = Server()
    for port in (Port.INTERNAL, Port.CONTROLLER):
        await asyncio.start_server(server.serve, "0.0.0.0", port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
