"""A part of a page that is written from rows: what stands between two markers, and nothing around it."""

from dataclasses import dataclass
from pathlib import Path

from lengen.results.store import write_atomically


@dataclass(frozen=True)
class Block:
    name: str
    command: str  # that writes it

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: written by `{self.command}` -->"

    @property
    def end(self) -> str:
        return f"<!-- end of {self.name} -->"

    def write(self, page: Path, content: str) -> None:
        write_atomically(page, self.within(page.read_text(encoding="utf-8"), content, str(page)).encode())

    def within(self, text: str, content: str, where: str) -> str:
        """The text of a page with another content between the markers."""
        before, begin, rest = text.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not begin or not end:
            raise ValueError(
                f"{where} has no place for the {self.name}; put the lines {self.begin!r} and {self.end!r} there"
            )
        return f"{before}{self.begin}\n{content}\n{self.end}{after}"
