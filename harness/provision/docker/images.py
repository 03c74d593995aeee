"""Images without a registry: made of files of this machine, named by their content, so made once for an engine.

Kafka's image has the layout of the official one (`/opt/kafka/libs`, `JAVA_HOME`), so that either can be used. It contains
this machine's Java with the libraries that it is linked to, and Kafka's jars: no shell, no distribution.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import DockerException, ImageNotFound

from harness.errors import SetupError
from harness.provision import external_tool
from harness.runtime.cache import Progress, lock, timed, to_stderr

if TYPE_CHECKING:
    import docker

JAVA_HOME = "/opt/java/openjdk"
KAFKA_LIBS = "/opt/kafka/libs"
TOXIPROXY = "/toxiproxy-server"
LABEL = "onceproof.image"
_RECIPE = "1"  # change it when the same files make a different image
# Parts of a Java home that only developers, documentation or graphics need.
_LEFT_OUT = re.compile(
    r"(jmods|include|man|docs|legal|demo|sample)/.*|lib/(src\.zip|ct\.sym|libawt.*|libfontmanager.*|libfreetype.*"
    r"|liblcms.*|libjavajpeg.*|libmlib.*|libsplashscreen.*|libjsound.*)"
)
_LINKED = re.compile(r"(?:=> )?(/\S+) \(0x")
_LDD_AT_ONCE = 50
_PIECE_BYTES = 1 << 20


def kafka_image(
    client: docker.DockerClient, java: Path, libs: Path, version: str, progress: Progress = to_stderr
) -> str:
    """Return the name of an image with this Java and these jars; make it if the engine does not have it."""
    home = java.resolve().parent.parent
    java_files = {
        f"{JAVA_HOME}/{name}": path for name, path in _files(home) if _LEFT_OUT.fullmatch(name) is None
    }
    jars = {f"{KAFKA_LIBS}/{jar.name}": jar for jar in sorted(libs.glob("*.jar"))}

    def content() -> Mapping[str, Path]:
        programs = [path for path in java_files.values() if ".so" in path.name or path.parent.name == "bin"]
        return {**{str(path): path for path in _linked(programs)}, **java_files, **jars}

    path = f"{JAVA_HOME}/bin:/usr/bin:/bin"
    settings = [f"ENV JAVA_HOME={JAVA_HOME}", f"ENV PATH={path}", f"LABEL {LABEL}=kafka"]
    key = _key([*java_files.values(), *jars.values()])
    return _made(client, "kafka", f"{version}-{key}", content, settings, progress)


def toxiproxy_image(
    client: docker.DockerClient, program: Path, version: str, progress: Progress = to_stderr
) -> str:
    """Return the name of an image that contains only this statically linked program."""
    settings = [f'ENTRYPOINT ["{TOXIPROXY}"]', f"LABEL {LABEL}=toxiproxy"]
    name = f"{version}-{_key([program])}"

    def content() -> Mapping[str, Path]:
        return {**{str(path): path for path in _linked([program])}, TOXIPROXY: program}

    return _made(client, "toxiproxy", name, content, settings, progress)


def chosen_image(client: docker.DockerClient, name: str, progress: Progress = to_stderr) -> str:
    """Return the user's image; fetch it if the engine does not have it."""
    try:
        client.images.get(name)
    except ImageNotFound:
        with timed(f"fetching image {name}", progress):
            try:
                client.images.pull(name)
            except DockerException as error:
                why = " ".join(str(error).split())[:200]
                raise SetupError(
                    f"--image {name}: the engine does not have it and cannot fetch it: {why}; load it with docker load,"
                    " or leave out --image"
                ) from error
    return name


def _made(
    client: docker.DockerClient,
    what: str,
    tag: str,
    content: Callable[[], Mapping[str, Path]],
    settings: Sequence[str],
    progress: Progress,
) -> str:
    name = f"onceproof/{what}:{tag}"
    if _has(client, name):
        return name
    with lock(f"image-{what}", progress):
        if _has(client, name):
            return name
        with (
            timed(f"making image {name}, once for an engine", progress),
            tempfile.TemporaryFile() as file,
        ):
            with tarfile.open(fileobj=file, mode="w", dereference=True) as archive:
                _add_folders(archive)
                for inside, path in content().items():
                    archive.add(path, inside, recursive=False, filter=_plain)
            file.seek(0)
            try:
                pieces = iter(
                    lambda: file.read(_PIECE_BYTES), b""
                )  # a file itself would not be sent in chunks
                client.api.import_image_from_stream(
                    pieces, repository=f"onceproof/{what}", tag=tag, changes=list(settings)
                )
                client.images.get(name)
            except DockerException as error:
                why = " ".join(str(error).split())[:300]
                raise SetupError(f"the engine did not accept image {name}: {why}") from error
    return name


def _has(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _add_folders(archive: tarfile.TarFile) -> None:
    """Add the folders that programs expect; /tmp is writable for all users."""
    for name, mode in (("tmp", 0o1777), ("etc", 0o755)):
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, mode
        archive.addfile(folder)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mode |= 0o444
    return info


def _files(folder: Path) -> Iterable[tuple[str, Path]]:
    """Yield all files below the folder, by their names inside it, without dangling links."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path


def _linked(programs: Sequence[Path]) -> list[Path]:
    """Return the machine's shared libraries that these programs and libraries are linked to, at their own paths."""
    found: set[str] = set()
    for start in range(0, len(programs), _LDD_AT_ONCE):
        said = external_tool.output(
            ["sh", "-c", 'ldd "$@" 2>/dev/null; true', "sh", *programs[start : start + _LDD_AT_ONCE]]
        )
        found |= set(_LINKED.findall(said or ""))
    own = {str(path.parent) for path in programs}
    return [Path(path) for path in sorted(found) if str(Path(path).parent) not in own]


def _key(files: Iterable[Path]) -> str:
    facts = [_RECIPE, *(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
