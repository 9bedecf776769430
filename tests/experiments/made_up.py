"""Rows that nobody measured, to see what claims, figures and pages make of them."""

from lengen.experiments.figures import FIGURES, measures_of
from lengen.experiments.presets import plain_name, preset_config
from lengen.results import Row
from lengen.results.sweep import SweepRow


def as_the_paper_has_it(preset: str, length: int, k_test: int, seed: int) -> float:
    """Accuracies shaped like the paper's figures, with a little noise between seeds."""
    if preset.startswith("sharp"):  # ours, a little better
        return as_the_paper_has_it(plain_name(preset), length, k_test, seed) + 0.005
    if preset.startswith("wide"):
        return 1.0
    noise = 0.004 * seed
    figure, _, arm = preset.partition("-")
    number = int("".join(c for c in arm if c.isdigit()))
    if figure in ("fig1", "fig7"):
        if k_test > number:
            return 0.5 + noise
        decline = 0.04 * (k_test - 4) if number >= 10 and length > 50 else 0.0
        return 0.99 - noise - decline
    if figure == "fig2":
        return 0.99 - noise if length <= 40 else 0.95 - 0.1 * number - noise
    if figure == "fig3a":
        return 0.97 - noise
    if length <= (40 if figure.startswith("fig8") else 60):
        return 0.96 - noise
    return (0.4 if figure == "fig3d" else 0.1) + noise


def mirrored(preset: str, length: int, k_test: int, seed: int) -> float:
    return 1.0 - as_the_paper_has_it(preset, length, k_test, seed)


def made_up_rows(accuracy, num_seeds: int = 3, num_examples: int = 1000) -> dict[str, list[SweepRow]]:
    rows: dict[str, list[SweepRow]] = {}
    for figure, spec in FIGURES.items():
        for preset in spec.presets:
            config = preset_config(preset, "cpu")
            metrics = {config.headline_metric} if spec.only_headline else {config.headline_metric, "last-token"}
            for seed in range(num_seeds):
                for measure in measures_of(spec, config):
                    k_test = measure.overrides.get("task.k_test", 0)
                    for length in measure.lengths:
                        correct = round(num_examples * accuracy(preset, length, k_test, seed))
                        rows.setdefault(figure, []).extend(
                            SweepRow(figure, preset, "cpu", config.arm, seed, 1.0, "0", None, row)
                            for row in (
                                Row("r", 1, length, metric, correct, num_examples, 0, "one-pass", measure.overrides)
                                for metric in sorted(metrics)
                            )
                        )
    return rows
