"""The analysis of Sec. 5.3: L_short, L_long and L_short,sparse for every example, with baselines and curves."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from lengen.context.causal_model import CausalModel
from lengen.context.influence import leave_one_out
from lengen.context.selection import at_random, by_influence, greedily, most_attended, most_recent
from lengen.context.subsets import subset_losses
from lengen.context.text import Examples
from lengen.context.window import Window
from lengen.results.context import (
    ORDERS,
    ContextRow,
    ContextSettings,
    GreedySelection,
    append_rows,
    change_settings,
    read_analysis,
    start_analysis,
)

EXAMPLES_AT_ONCE = 4  # they share batches; what an interrupted analysis loses at most, unless one window has more


def analyze(
    model: CausalModel,
    selector: CausalModel,
    examples: Examples,
    settings: ContextSettings,
    max_batch_tokens: int,
    rows_file: Path,
    digests: dict[str, str],
    provenance: dict[str, str],
) -> Iterator[int]:
    """Append a row for each example that has none yet; yields how many there are, as they come."""
    done = _rows_done(rows_file, settings, digests, provenance)
    yield len(done)
    num_targets = settings.num_targets
    missing = [text for text in range(len(examples.starts)) if text * num_targets not in done]
    at_once = max(1, EXAMPLES_AT_ONCE // num_targets)
    for first in range(0, len(missing), at_once):
        part = missing[first : first + at_once]
        append_rows(
            rows_file, _rows_of(model, selector, part, examples.starts, examples.tokens, settings, max_batch_tokens)
        )
        yield len(done) + (first + len(part)) * num_targets


def _rows_done(
    rows_file: Path, settings: ContextSettings, digests: dict[str, str], provenance: dict[str, str]
) -> set[int]:
    if not rows_file.exists():
        start_analysis(rows_file, settings, provenance, digests)
        return set()
    analysis = read_analysis(rows_file)
    for name, value in vars(settings).items():
        before = getattr(analysis.settings, name)
        if name == "num_examples" and value > before:
            continue  # the first of many examples are those of few
        if name == "num_greedy" and before == min(value, analysis.settings.num_examples):
            continue  # all that there were
        if before != value:
            raise ValueError(
                f"{rows_file.parent} holds an analysis with {name}={before}, and this one has {name}={value}; "
                "choose another --out"
            )
    for name, digest in digests.items():
        if analysis.digests.get(name, digest) != digest:  # analyses of earlier versions have none to compare
            other = {
                "model": f"another model named {settings.model} (its weights differ)",
                "select_with": f"another selecting model named {settings.select_with} (its weights differ)",
                "tokens": "the same text cut into other tokens (the tokenizer differs)",
            }[name]
            raise ValueError(f"{rows_file.parent} holds an analysis of {other}; choose another --out")
    if settings.num_examples > analysis.settings.num_examples:
        change_settings(rows_file, settings)
    return {row.example for row in analysis.rows}


def _rows_of(
    model: CausalModel,
    selector: CausalModel,
    text_numbers: Sequence[int],
    starts: Int[Tensor, " W"],
    tokens: Int[Tensor, "W L"],
    settings: ContextSettings,
    max_batch_tokens: int,
) -> list[ContextRow]:
    window = Window(settings.short, settings.long, settings.num_targets)
    texts = tokens[list(text_numbers)]
    # The examples: a window of text and, of its targets, the one to predict.
    places = [(text, target) for text in text_numbers for target in range(window.num_targets)]
    losses_without = leave_one_out(selector, texts, window, max_batch_tokens)
    everything = frozenset(range(window.num_far))
    complete = [(row, everything) for row in range(len(places))]
    losses_with_all = subset_losses(selector, texts, window, complete, max_batch_tokens)
    attended = most_attended(selector, texts, window, max_batch_tokens)
    orders = [  # by example, then in the order of ORDERS
        {
            "influence": by_influence(losses_without[row]),
            "random": at_random(window.num_far, settings.seed, text),
            "attended": attended[row],
            "recent": most_recent(window.num_far),
        }
        for row, (text, _) in enumerate(places)
    ]
    subsets = [
        (row, frozenset(order[name][:size]))
        for row, order in enumerate(orders)
        for name in ORDERS
        for size in (0, *settings.curve, window.num_far)
    ]
    losses = subset_losses(model, texts, window, subsets, max_batch_tokens).view(len(places), len(ORDERS), -1)
    rows = []
    for row, (text, target) in enumerate(places):
        number, greedy = text * window.num_targets + target, None
        if number < settings.num_greedy:
            chosen = greedily(selector, texts, row, window, settings.num_influential, max_batch_tokens)
            grown = [(row, frozenset(chosen[: size + 1])) for size in range(len(chosen))]
            greedy = GreedySelection(chosen, subset_losses(model, texts, window, grown, max_batch_tokens).tolist())
        rows.append(
            ContextRow(
                example=number,
                start=int(starts[text]),
                loss_short=float(losses[row, 0, 0]),
                loss_long=float(losses[row, 0, -1]),
                influential=orders[row]["influence"][: settings.num_influential],
                influence=(losses_without[row] - losses_with_all[row]).tolist(),
                losses={name: losses[row, index, 1:-1].tolist() for index, name in enumerate(ORDERS)},
                greedy=greedy,
            )
        )
    return rows
