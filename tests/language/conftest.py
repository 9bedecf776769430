"""A small public-domain corpus (the beginning of Tiny Shakespeare), prepared once."""

from pathlib import Path

import pytest

from lengen.language.documents import Document
from lengen.language.packed import PackedCorpus
from lengen.language.prepare import prepare

EXCERPT = Path(__file__).with_name("tiny_shakespeare.txt")


def shakespeare_documents() -> list[Document]:
    speeches = EXCERPT.read_text(encoding="utf-8").split("\n\n")
    return [Document("\n\n".join(speeches[start : start + 8])) for start in range(0, len(speeches), 8)]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PackedCorpus:
    out = tmp_path_factory.mktemp("corpus") / "shakespeare"
    return prepare("shakespeare", shakespeare_documents, out, vocab_size=400, licences={"shakespeare": "public domain"})
