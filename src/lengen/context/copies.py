"""Who gains from far tokens? Examples by where the token to be predicted stood before, since it may be copied."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal

from lengen.evaluate.agreement import part
from lengen.results.context import Analysis

Place = Literal["far", "recent", "nowhere"]
PLACES: tuple[Place, ...] = ("far", "recent", "nowhere")


def places_of(analysis: Analysis, documents: Sequence[Sequence[int]]) -> list[Place]:
    """Of each example's predicted token: among the recent tokens, else among the far ones, or nowhere in the window."""
    settings, stream = analysis.settings, list(chain.from_iterable(documents))
    places: list[Place] = []
    for row in analysis.rows:
        first_recent = row.start + settings.num_far
        predicted = row.start + settings.long - 1 + settings.target_of(row.example)
        if predicted >= len(stream):
            raise ValueError(
                f"{settings.text} has {len(stream)} tokens, fewer than when it was analysed; "
                "give the --model of the analysis"
            )
        if stream[predicted] in stream[first_recent:predicted]:
            places.append("recent")
        else:
            places.append("far" if stream[predicted] in stream[row.start : first_recent] else "nowhere")
    return places


def gains_by_place(analysis: Analysis, places: Sequence[Place]) -> list[dict[str, Any]]:
    """A record for each place: how many examples, their mean gain from all far tokens, and their share of all gain."""
    if analysis.num_windows < 2:
        raise ValueError(f"intervals need two windows of text; the analysis has {analysis.counted()}, so let it go on")
    full, sparse = analysis.gains_long(), analysis.gains_sparse("influence")
    records = []
    for place in PLACES:
        is_here = [found == place for found in places]
        gain, share = part(full, is_here, analysis.settings.num_targets)
        recovered, _ = part(sparse, is_here, analysis.settings.num_targets)
        record: dict[str, Any] = {"place": place, "num_examples": sum(is_here), "num_windows": analysis.num_windows}
        for name, interval in (("gain", gain), ("share_of_gain", share), ("gain_of_influential", recovered)):
            record |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
        records.append(record)
    return records
