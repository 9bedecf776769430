"""A corpus is a stream of documents; these read one from each kind of file."""

import csv
import gzip
import html
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Literal, NamedTuple

Split = Literal["train", "valid", "test"]
Reader = Callable[[str, bytes], Iterator["Document"]]  # (name of the file, its content)


class Document(NamedTuple):
    text: str
    split: Split | None = None  # None: drawn from the text itself


def utf8_text(name: str, content: bytes) -> Iterator[Document]:
    yield Document(content.decode("utf-8"))


def latin1_text(name: str, content: bytes) -> Iterator[Document]:
    yield Document(content.decode("latin-1"))


TITLE = re.compile(r"^ = [^=].* = \n", re.MULTILINE)  # sections have two signs or more


def wikitext(name: str, content: bytes) -> Iterator[Document]:
    """WikiText keeps its own splits, a file each; an article begins with its title."""
    text = gzip.decompress(content).decode("utf-8")
    split: Split = "train" if "train" in name else "valid" if "valid" in name else "test"
    starts = [match.start() for match in TITLE.finditer(text)]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        yield Document(text[start:stop], split)


def csv_column(column: str) -> Reader:
    def read(name: str, content: bytes) -> Iterator[Document]:
        csv.field_size_limit(1 << 30)  # reviews and articles are longer than the default allows
        for row in csv.DictReader(io.StringIO(content.decode("utf-8", errors="replace"))):
            yield Document(html.unescape(re.sub(r"<br\s*/?>", "\n", row[column] or "")))

    return read


def zipped(reader: Reader) -> Reader:
    def read(name: str, content: bytes) -> Iterator[Document]:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for inner in sorted(archive.namelist()):
                yield from reader(inner, archive.read(inner))

    return read


class _Prose(HTMLParser):
    """Text of a page without what is no prose: code, scripts, navigation."""

    SKIPPED = ("script", "style", "pre", "nav", "head", "table", "footer")
    # What Sphinx and DocBook call the same lists on every page; learned by heart, they would pass for text understood.
    NAVIGATION = frozenset({"sphinxsidebar", "related", "footer", "headerlink", "navheader", "navfooter", "toc"})
    BREAKS = ("p", "br", "div", "li", "h1", "h2", "h3", "h4", "h5", "dt", "dd")

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._skipped = ""  # the tag of the element that is being skipped
        self._depth = 0  # of elements with that tag inside each other

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped:
            self._depth += tag == self._skipped
        elif tag in self.SKIPPED or not self.NAVIGATION.isdisjoint((dict(attrs).get("class") or "").split()):
            self._skipped, self._depth = tag, 1
        elif tag in self.BREAKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._skipped:
            self._depth -= 1
            if not self._depth:
                self._skipped = ""

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.pieces.append(re.sub(r"\s+", " ", data))


def html_page(name: str, content: bytes) -> Iterator[Document]:
    parser = _Prose()
    parser.feed((gzip.decompress(content) if name.endswith(".gz") else content).decode("utf-8", errors="replace"))
    lines = (line.strip() for line in "".join(parser.pieces).split("\n"))
    yield Document("\n".join(line for line in lines if line))


def sword_blocks(index: bytes, blocks: bytes) -> Iterator[Document]:
    """A SWORD commentary: zlib blocks, each of a book or chapter, listed as (offset, size, inflated size)."""
    for offset, size, inflated in struct.iter_unpack("<III", index):
        text = zlib.decompress(blocks[offset : offset + size]) if size else b""
        if len(text) != inflated:
            raise ValueError(f"a block of the commentary has {len(text)} bytes, not {inflated}; fetch it again")
        yield Document(html.unescape(re.sub(r"<[^>]*>", " ", text.decode("utf-8", errors="replace"))))
