"""Properties files of Java clients: the settings of librdkafka that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusters.external.client_properties import read_properties, secrets_in
from harness.errors import UsageError


def _config(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "client.properties"
    file.write_text(text, encoding="utf-8")
    return file


def test_properties_of_java_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "from-env")
    (tmp_path / "ca.pem").touch()
    file = _config(
        tmp_path,
        "# ours\nbootstrap.servers=elsewhere:1\nsecurity.protocol = SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '   username="alice" password="${env:KAFKA_PASSWORD}";\n'
        "ssl.truststore.type=PEM\nssl.truststore.location=ca.pem\nssl.endpoint.identification.algorithm=\n",
    )
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "from-env",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_a_secret_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n", encoding="ascii")
    read = read_properties(_config(tmp_path, "sasl.username=a\nsasl.password=${file:password}\n"))
    assert read["sasl.password"] == "s3cret"
    assert secrets_in(read) == ["s3cret"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sasl.password=${env:NO_SUCH_VARIABLE}", r"sasl\.password: the environment has no variable NO_SUCH"),
        ("sasl.password=${file:nowhere}", r"sasl\.password: the file nowhere cannot be read"),
        ("acks=0", r"acks: not a setting of a connection"),
        ("group.id=others", r"group\.id: not a setting of a connection"),
        ("security.protocol", r"entry 1 is not of the form key=value"),
        ("ssl.truststore.location=a.jks", r"ssl\.truststore\.type=JKS: only PEM"),
        ("ssl.ca.location=nowhere.pem", r"ssl\.ca\.location: there is no file .*nowhere\.pem"),
        ("sasl.jaas.config=Krb5LoginModule required;", r"sasl\.jaas\.config: unknown login module"),
        ("security.protocol=sasl_ssl\nsasl.mechanism=OAUTHBEARER", r"sasl\.mechanism=OAUTHBEARER"),
    ],
)
def test_a_bad_setting_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        read_properties(_config(tmp_path, text))
    assert "\n" not in str(raised.value)
