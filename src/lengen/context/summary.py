"""What an analysis says in a few numbers."""

from typing import Any

from lengen.evaluate.agreement import Agreement, agreement
from lengen.results.context import ORDERS, Analysis


def summarize(analysis: Analysis) -> list[dict[str, Any]]:
    """A record for each way of choosing tokens: how the gain from k of them follows the gain from all."""
    full, num_targets = analysis.gains_long(), analysis.settings.num_targets
    if analysis.num_windows < 2:
        raise ValueError(f"a summary needs two windows of text; the analysis has {analysis.counted()}, so let it go on")
    records = [_record(analysis, order, agreement(full, analysis.gains_sparse(order), num_targets)) for order in ORDERS]
    selected = [row for row in analysis.rows if row.greedy is not None]
    if len(selected) >= 2 * num_targets:
        gains = [row.loss_short - row.greedy.losses[-1] for row in selected if row.greedy is not None]
        full = [row.gain_long for row in selected]
        records.append(_record(analysis, "greedy", agreement(full, gains, num_targets)))
    return records


def _record(analysis: Analysis, order: str, found: Agreement) -> dict[str, Any]:
    settings = analysis.settings
    record: dict[str, Any] = {
        "model": settings.model,
        "select_with": settings.select_with,
        "text": settings.text,
        "short": settings.short,
        "long": settings.long,
        "num_influential": settings.num_influential,
        "order": order,
        "num_examples": found.num_examples,
        "num_windows": found.num_examples // settings.num_targets,
    }
    for name in ("correlation", "slope", "recovered"):
        interval = getattr(found, name)
        record |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
    losses = [(row.loss_short, row.loss_long) for row in analysis.rows]
    return record | {
        "mean_loss_short": sum(short for short, _ in losses) / len(losses),
        "mean_loss_long": sum(long for _, long in losses) / len(losses),
    }
