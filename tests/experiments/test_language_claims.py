"""The claims of Sec. 5.3 from rows that nobody measured."""

import math
from dataclasses import replace
from itertools import product

import pytest

from lengen.cli import main
from lengen.experiments.language_claims import LANGUAGE_CLAIMS
from lengen.experiments.language_page import language_section
from lengen.results.perplexity import TABLE1, PerplexityRow, append_perplexity_rows

TEXTS = ("english", "documentation")
# Perplexities as the paper has them where it has them.
LIKE_THE_PAPER = {
    ("short", 64): 17.59,
    ("short", 128): 14.74,
    ("long", 64): 17.62,
    ("long", 128): 14.49,
    ("short-no-pose", 64): 17.5,
    ("short-no-pose", 128): 30.0,
    ("pose-from-scratch", 64): 18.5,
    ("pose-from-scratch", 128): 17.0,
    ("pose-beyond", 128): 14.4,
    ("short-no-pose+yarn", 128): 14.5,
    ("pose-yarn", 64): 17.5,
    ("pose-yarn", 128): 14.3,
    ("pose-yarn-beyond", 64): 17.5,
    ("pose-yarn-beyond", 128): 14.2,
}


def made_up(
    perplexities: dict[tuple[str, int], float], noise: float = 0.01, corpora: tuple[str, ...] = TEXTS
) -> list[PerplexityRow]:
    rows = []
    for corpus, ((preset, length), perplexity) in product(corpora, perplexities.items()):
        for measure in ("same-targets", "all-positions"):
            # Documents differ a lot, in the same way for every model; models differ by a little noise.
            losses = [10 * (math.log(perplexity) + 0.5 * math.sin(d) + noise * math.cos(d * length)) for d in range(40)]
            rows.append(
                PerplexityRow(
                    preset, "cpu", f"{preset}-{corpus}-s0", preset, 0, 1, 10**6, 3600.0, "0", None, corpus, corpus,
                    "test", measure, length, corpus, {}, losses, [10] * 40,
                )
            )  # fmt: skip
    return rows


def verdicts(rows: list[PerplexityRow]) -> list[str]:
    return [claim.judge(rows).verdict for claim in LANGUAGE_CLAIMS]


def test_rows_like_the_papers_reproduce_every_claim():
    assert verdicts(made_up(LIKE_THE_PAPER)) == ["reproduced"] * len(LANGUAGE_CLAIMS)


def test_mirrored_rows_reproduce_none():
    mirrored = {place: 300 / perplexity for place, perplexity in LIKE_THE_PAPER.items()}
    mirrored |= {("long", 64): 14.0, ("long", 128): 15.0}
    assert verdicts(made_up(mirrored)) == ["not"] * len(LANGUAGE_CLAIMS)


def test_no_rows_are_no_data():
    assert verdicts([]) == ["no-data"] * len(LANGUAGE_CLAIMS)


def test_each_text_is_judged_by_its_own_rows():
    for text in TEXTS:
        judged = {
            claim.name: claim.judge(made_up(LIKE_THE_PAPER, corpora=(text,))).verdict for claim in LANGUAGE_CLAIMS
        }
        about_manuals = {name for name in judged if name.startswith("manuals-")}
        own = about_manuals if text == "documentation" else judged.keys() - about_manuals
        assert {name for name, verdict in judged.items() if verdict == "reproduced"} == own


def test_a_gain_within_the_noise_is_partly():
    rows = made_up({("short", 64): 17.5, ("short", 128): 17.45}, noise=0.2)
    judgement = LANGUAGE_CLAIMS[1].judge(rows)
    assert judgement.verdict == "partly"
    assert judgement.interval.low < judgement.interval.value < 1 < judgement.interval.high


def test_pairing_by_document_is_what_makes_it_visible():
    """Unpaired, the spread of documents (0.5) would hide a gain of 2 %."""
    rows = made_up({("short", 64): 17.5, ("short", 128): 17.15})
    _, low, high = LANGUAGE_CLAIMS[1].judge(rows).interval
    assert low == pytest.approx(0.98, abs=0.01)
    assert high < 1
    shuffled = [row if row.length == 64 else _reversed(row) for row in rows]
    assert LANGUAGE_CLAIMS[1].judge(shuffled).interval.high > 1


def _reversed(row: PerplexityRow) -> PerplexityRow:
    return replace(row, losses=row.losses[::-1])


def test_claims_and_page_show_them(tmp_path, capsys):
    append_perplexity_rows(tmp_path / TABLE1, made_up(LIKE_THE_PAPER))
    assert main(["claims", "--rows", str(tmp_path)]) == 0
    assert "reproduced  short-beats-trivial-baseline" in capsys.readouterr().out
    rows = made_up(LIKE_THE_PAPER)
    page = language_section(rows)
    assert f"| short | 1.0 | {rows[0].perplexity:.2f} [" in page
    assert "**reproduced** — at 128, h_short is within 5%" in page
    assert f"{8 * len(TEXTS)} models, {8.0 * len(TEXTS)} hours" in page
    assert "Not run yet" in language_section([])


def test_arms_are_compared_after_as_many_tokens():
    """What a longer training gives to one arm is not held against an arm that has not had it."""
    claims = {claim.name: claim for claim in LANGUAGE_CLAIMS}
    shorter = made_up(LIKE_THE_PAPER, corpora=("english",))
    longer = [
        replace(row, run="longer-s0", num_tokens=2 * 10**6)
        for row in made_up({("short", 64): 12.0, ("short", 128): 13.0}, corpora=("english",))
    ]
    both = [*longer, *shorter]
    needed, alone = (claims[name] for name in ("pose-is-needed", "short-beats-trivial-baseline"))
    assert needed.judge(both) == needed.judge(shorter)
    assert needed.judge(both).note == "ratio of perplexities; 1.0 million tokens"
    assert needed.judge(
        [*longer, *(replace(row, num_tokens=3 * 10**6) for row in shorter if row.preset != "short")]
    ).note == ("ratio of perplexities; 2.0 and 3.0 million tokens")
    assert (alone.judge(shorter).verdict, alone.judge(both).verdict) == ("reproduced", "not")
    page = language_section(both)
    assert f"| short | 1.0 | {shorter[0].perplexity:.2f} [" in page
    assert f"| short | 2.0 | {longer[0].perplexity:.2f} [" in page


def test_other_text_than_that_of_training_is_shown_and_not_judged():
    own = made_up(LIKE_THE_PAPER, corpora=("english",))
    elsewhere = [
        replace(row, trained_on="documentation", run=f"{row.run}-elsewhere", losses=[2 * loss for loss in row.losses])
        for row in own
    ]
    assert verdicts(elsewhere) == ["no-data"] * len(LANGUAGE_CLAIMS)
    assert [claim.judge([*own, *elsewhere]) for claim in LANGUAGE_CLAIMS] == [c.judge(own) for c in LANGUAGE_CLAIMS]
    assert "| english, trained on documentation: the same tokens" in language_section([*own, *elsewhere])
