"""The text of one example with its influential tokens highlighted: in the terminal, or as a page of its own."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

from lengen.context.reread import Reread, read_again
from lengen.results.context import Analysis, ContextRow, ContextSettings


@dataclass(frozen=True)
class Piece:
    """The characters of one token."""

    text: str
    part: Literal["far", "recent", "predicted"]
    influence: float  # of far tokens; 0 for the others
    rank: int | None  # 1: the most influential; None: not among those unmasked


def pieces_of(analysis: Analysis, row: ContextRow, folder: Path, model: Path | None, text: Path | None) -> list[Piece]:
    """Every token of an example, in the words of the text."""
    settings = analysis.settings
    content, offsets = _characters_of(settings, row, read_again(analysis, folder, model, text))
    pieces = []
    shown_to = offsets[0][0]
    for index, (_, end) in enumerate(offsets):
        # From where the last one ended: some tokenizers count no space to a token, and bytes of one letter share it.
        characters, shown_to = content[shown_to:end], max(end, shown_to)
        is_far = index < settings.num_far
        part: Literal["far", "recent", "predicted"] = (
            "far" if is_far else "predicted" if index == len(offsets) - 1 else "recent"
        )
        rank = row.influential.index(index) + 1 if index in row.influential else None
        pieces.append(Piece(characters, part, row.influence[index] if is_far else 0.0, rank))
    return pieces


def _characters_of(settings: ContextSettings, row: ContextRow, reread: Reread) -> tuple[str, list[tuple[int, int]]]:
    """The document that holds the example, and where in it each of the example's tokens is."""
    num_before = 0
    for content, encoding in zip(reread.text.documents, reread.encodings, strict=True):
        if row.start < num_before + len(encoding):
            first = row.start - num_before
            return content, encoding.offsets[first : first + settings.long + settings.target_of(row.example)]
        num_before += len(encoding)
    raise ValueError(f"{reread.text.name} has fewer tokens than when it was analysed; give the --model of the analysis")


def print_pieces(settings: ContextSettings, row: ContextRow, pieces: list[Piece]) -> None:
    from rich.console import Console
    from rich.text import Text

    styles = {"far": "dim", "recent": "", "predicted": "bold underline"}
    line = Text()
    for piece in pieces:
        line.append(piece.text, "bold reverse" if piece.rank is not None else styles[piece.part])
    console = Console(highlight=False)
    console.print(line, soft_wrap=True)  # a terminal wraps, and a file keeps the lines of the text
    console.print()
    for rank, token in enumerate(row.influential, start=1):
        text = pieces[token].text
        console.print(
            f"{rank}. {text!r} (token {token}): loss {row.influence[token]:+.3f} without it",
            markup=False,
            soft_wrap=True,
        )
    console.print(_losses_line(settings, row), markup=False, soft_wrap=True)


def page_of(settings: ContextSettings, row: ContextRow, pieces: list[Piece]) -> str:
    """A page that needs nothing else; the shade of a far token is its influence, orange where the model misses it."""
    largest = max((abs(piece.influence) for piece in pieces), default=0.0) or 1.0
    spans = []
    for piece in pieces:
        shown = escape(piece.text).replace("\n", "↵<br>")
        if piece.part != "far":
            spans.append(f'<span class="{piece.part}">{shown}</span>')
            continue
        colour = "214, 69, 0" if piece.influence > 0 else "0, 114, 178"
        shade = f"background: rgba({colour}, {abs(piece.influence) / largest:.2f})"
        mark = f"<sup>{piece.rank}</sup>" if piece.rank is not None else ""
        kind = "far influential" if piece.rank is not None else "far"
        title = f"loss {piece.influence:+.4f} without this token"
        spans.append(f'<span class="{kind}" style="{shade}" title="{title}">{shown}{mark}</span>')
    heading = f"{settings.text}, example {row.example}"
    chosen = "" if settings.select_with == settings.model else f"; tokens chosen by {settings.select_with}"
    return _PAGE.format(
        title=escape(heading),
        model=escape(settings.model + chosen),
        text="".join(spans),
        losses=escape(_losses_line(settings, row)),
        num_influential=settings.num_influential,
    )


def _losses_line(settings: ContextSettings, row: ContextRow) -> str:
    sparse = row.losses["influence"][settings.curve.index(settings.num_influential)]
    num_recent = settings.short + settings.target_of(row.example)
    return (
        f"loss of the last token: {row.loss_short:.3f} from the {num_recent} recent ones, "
        f"{sparse:.3f} with {settings.num_influential} influential far ones, "
        f"{row.loss_long:.3f} with all {settings.num_far}"
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 17px/1.7 Georgia, serif; max-width: 44em; margin: 2.5em auto; padding: 0 1em; color: #222; }}
h1 {{ font-size: 1.2em; }}
p.text {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
sup {{ line-height: 0; }}
.far {{ color: #555; border-radius: 3px; }}
.influential {{ color: #000; padding: 0 1px; font-weight: bold; outline: 1.5px solid #d64500; }}
.predicted {{ font-weight: bold; border-bottom: 3px solid #222; }}
.note {{ font-size: .85em; color: #555; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="note">{model}</p>
<p class="text">{text}</p>
<p>{losses}</p>
<p class="note">Grey: the far past. Orange: the loss of the underlined token rises when this one is masked out of all
attention; blue: it falls. Numbered: the {num_influential} most influential. Black: the recent past, always seen.</p>
</body>
</html>
"""
