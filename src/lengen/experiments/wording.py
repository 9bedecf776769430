"""Verdicts as the results page words them."""

import math
from collections.abc import Iterable

from lengen.evaluate.intervals import Interval
from lengen.experiments.judging import Judgement


def verdicts(judged: Iterable[tuple[str, Judgement]], decimals: int = 2) -> str:
    """Of statements, a line each."""
    lines = []
    for statement, judgement in judged:
        value = judgement.interval.value
        numbers = f": {with_interval(judgement.interval, decimals)}" if math.isfinite(value) else ""
        count = f", {judgement.over}" if judgement.over else ""
        note = f" ({judgement.note})" if judgement.note else ""
        lines.append(f"- **{judgement.verdict}** — {statement}{numbers}{count}{note}")
    return "**Claims.**\n\n" + "\n".join(lines)


def with_interval(interval: Interval, decimals: int = 2) -> str:
    value, low, high = interval
    bounds = f" [{low:.{decimals}f}, {high:.{decimals}f}]" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{value:.{decimals}f}{bounds}"


def num_runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"
