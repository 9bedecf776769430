"""The text of an analysis, read again: rows hold places, not words."""

from pathlib import Path
from typing import Any, NamedTuple

from lengen.context.identity import tokens_digest
from lengen.context.loading import tokenizer_of
from lengen.context.sources import Sources
from lengen.context.text import Text, encodings_of, read_text
from lengen.results.context import Analysis


class Reread(NamedTuple):
    text: Text
    encodings: list[Any]  # one a document


def read_again(analysis: Analysis, folder: Path, model: Path | None, text: Path | None) -> Reread:
    """The text and its tokens, from where they were or are now; any other text or tokenizer is refused."""
    if model is None or text is None:
        sources = Sources.read(folder)
        model, text = model or Path(sources.model), text or Path(sources.text)
    source = read_text(text)
    if source.sha256 != analysis.settings.text_sha256:
        raise ValueError(f"{text} is not the text that was analysed (its checksum differs); give the right --text")
    encodings = encodings_of(tokenizer_of(model), source)
    found = tokens_digest([encoding.ids for encoding in encodings])
    if analysis.digests.get("tokens", found) != found:
        raise ValueError(f"{source.name} has other tokens than when it was analysed; give the --model of the analysis")
    return Reread(source, encodings)
