"""Spark's driver on this machine: clients without its secrets get no answer. TRUST S3"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from harness.reconcile.spark.masters import place
from harness.testing.listeners import listening

NOBODY = 65534
ROOT = Path(__file__).parents[3]
_RPC_REQUEST, _RPC_FAILURE = 3, 5
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")

PROGRAM = """
from harness.reconcile.spark import session
spark = session.spark("local[1]")
kept = {name: spark.sparkContext.getConf().get(name) for name in ("spark.authenticate", "spark.ui.enabled")}
token = spark.sparkContext._gateway.gateway_parameters.auth_token
squares = spark.range(3).rdd.map(lambda row: row[0] ** 2).sum()
print(spark.sparkContext._gateway.proc.pid, kept["spark.authenticate"], kept["spark.ui.enabled"], len(token or ""),
      squares, flush=True)
input()
"""

# What another user of the machine gets from a port: a frame of Spark's own protocol, a command for py4j, nonsense.
PROBE = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as connection:
    connection.settimeout(20)
    connection.sendall(bytes.fromhex(sys.argv[2]))
    heard = b""
    try:
        while part := connection.recv(65536):
            heard += part
            if len(heard) > 8 and len(heard) >= int.from_bytes(heard[:8], "big"):
                break
    except OSError:
        pass
sys.stdout.buffer.write(heard)
"""


def ask(port: int, message: bytes) -> bytes:
    words = [sys.executable, "-c", PROBE, str(port), message.hex()]
    if os.geteuid() == 0:
        words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]
    return subprocess.run(words, capture_output=True, timeout=60, check=True).stdout


def rpc(body: bytes) -> bytes:
    return struct.pack(">qbqi", 8 + 1 + 8 + 4 + len(body), _RPC_REQUEST, 77, len(body)) + body


@pytest.mark.spark
def test_every_port_of_a_session_requires_authentication(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        jvm, authenticates, ui, token, squares = process.stdout.readline().split()
        try:
            assert (authenticates, ui, squares) == ("true", "false", "5")
            assert int(token) >= 32, "py4j has a token"
            assert listening(process.pid) == set(), "Python itself listens on no port"
            ports = listening(int(jvm))
            assert ports
            assert {host for host, _port in ports} <= set(_LOOPBACK)
            answers = {port: ask(port, rpc(b"\0\0\7garbage")) for _host, port in ports}
            py4j = [port for port, heard in answers.items() if heard.startswith(b"!")]
            assert len(py4j) == 1
            for port, heard in answers.items():
                if port not in py4j:
                    assert heard[8] == _RPC_FAILURE
                    assert b"Expected SaslMessage" in heard, "it had to authenticate before anything was read"
            assert ask(py4j[0], b"c\no\nx\ne\n").startswith(b"!xsAuthentication error")
            arguments = Path(f"/proc/{jvm}/cmdline").read_bytes()
            assert b"secret" not in arguments.replace(b"java.secret", b"")
        finally:
            process.communicate("\n", timeout=60)


def test_unix_sockets_are_used_where_their_path_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for folder in (Path("/tmp/s"), Path("/tmp/" + "s" * 59), Path("/tmp/" + "s" * 60)):
        settings = place("local[*]", "1g", folder)
        assert settings["spark.authenticate"] == "true"
        used = "spark.python.unix.domain.socket.enabled" in settings
        with (
            socket.socket(socket.AF_UNIX) as tried,
            pytest.raises(OSError, match=r"No such file|too long") as error,
        ):
            tried.connect(f"{folder}/.{'0' * 36}.sock")
        assert used is isinstance(error.value, FileNotFoundError)
