"""Kafka's Java producer, of any release, in a JVM that Python calls through Py4J."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark

from harness.claims.bench import Bench, NotApplicable
from harness.contracts import Lane
from harness.errors import ClusterError
from harness.processes import child_process
from harness.provision.java import java
from harness.provision.kafka import KAFKA_VERSION, kafka_clients
from harness.waiting import wait_until

START_LIMIT_S = 120.0
ANSWER_LIMIT_S = 120.0  # of one call of Java, such as flush
BEFORE_STICKY = "2.3.1"  # the next release, 2.4, no longer sends records without a key round robin (KIP-480)
_STARTED = re.compile(r"^(\d+)\r?\n(\S+)\r?\n", re.MULTILINE)  # what Py4J prints: its port and its token
_SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"


class JavaProducer:
    """A `KafkaProducer` of Java. Its calls are calls of Java's methods, one after the other."""

    def __init__(self, jvm: Any, settings: Mapping[str, str]) -> None:
        properties = jvm.java.util.Properties()
        for name, value in settings.items():
            properties.setProperty(name, value)
        self._seconds = jvm.java.util.concurrent.TimeUnit.SECONDS
        self._record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)

    def send(self, topic: str, value: bytes, key: bytes | None = None) -> Any:
        """Call `send` and return Java's Future."""
        record = self._record(topic, value) if key is None else self._record(topic, key, value)
        return self._producer.send(record)

    def send_acked(self, topic: str, value: bytes) -> None:
        """Call `send` and wait for the ack."""
        self.send(topic, value).get(int(ANSWER_LIMIT_S), self._seconds)

    def flush(self) -> None:
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()


@contextmanager
def java_producer(bench: Bench, version: str = KAFKA_VERSION, **more: object) -> Iterator[JavaProducer]:
    """A Java producer of this release with the defaults of Java; names in `more` have _ for a dot."""
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from py4j.protocol import Py4JError

    if security := sorted(bench.cluster.client_settings(Lane.CONTROL)):
        raise NotApplicable(
            f"the Java producer is used on plaintext clusters only; this one needs {security[0]}"
        )
    settings = {
        "bootstrap.servers": bench.cluster.bootstrap_servers(Lane.CONTROL),
        "key.serializer": _SERIALIZER,
        "value.serializer": _SERIALIZER,
        **{name.replace("_", "."): str(value) for name, value in more.items()},
    }
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    words: list[str | Path] = [
        java(),
        "-Xmx128m",
        "-cp",
        f"{py4j}:{kafka_clients(version)}/*",
        "py4j.GatewayServer",
        "--enable-auth",
        "0",
    ]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "java"
        process = child_process.spawn(words, log=log)
        gateway: JavaGateway | None = None
        try:
            wait_until(lambda: _STARTED.search(_text(log)), START_LIMIT_S, "the Java client did not start")
            started = _STARTED.search(_text(log))
            assert started is not None
            gateway = JavaGateway(
                gateway_parameters=GatewayParameters(
                    port=int(started[1]), auth_token=started[2], read_timeout=ANSWER_LIMIT_S
                )
            )
            producer = JavaProducer(gateway.jvm, settings)
            yield producer
            producer.close()
        except Py4JError as error:
            raise ClusterError(f"Java client {version}: {str(error).splitlines()[0]}") from error
        finally:
            if gateway is not None:
                gateway.shutdown()  # otherwise its objects would report later that Java has ended
            child_process.end(process)


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
