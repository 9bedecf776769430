"""The first thing a newcomer runs: Predictive Position Coupling beside its no-coupling baseline, on two cores."""

import json
from dataclasses import replace
from pathlib import Path

from lengen.config import RunConfig
from lengen.experiments.presets import preset_config
from lengen.model.config import ModelConfig
from lengen.results import RunFolder, write_atomically

LENGTHS = (10, 20, 30, 40, 60, 80, 100, 120)
ARMS = {"ppc": "fig2-jump1", "baseline": "fig8a-jump1"}


def demo_config(preset: str) -> RunConfig:
    """Jump 1 alone is learned in a quarter of the steps that all four jumps need, from a gentler start."""
    return replace(
        preset_config(preset, "cpu"),
        model=ModelConfig(2, 4, 128),
        learning_rate=1e-3,
        steps=1_500,
        eval_lengths=LENGTHS,
        eval_every=1_500,
        log_every=20,
    )


def run_demo(out: Path, overwrite: bool) -> dict[str, dict[str, float] | float]:
    """Train both, draw the figure, write and return the summary."""
    from lengen.figures.length_curves import curves_of, draw_length_curves, save_figure
    from lengen.train.engines import LocalPool
    from lengen.train.launch import Job, run_side_by_side, train_job
    from lengen.train.optimise import discard, held

    RunFolder(out).create()
    jobs = [Job(name, demo_config(preset), RunFolder(out / name)) for name, preset in ARMS.items()]
    for job in jobs:
        if overwrite and job.folder.exists():
            with held(job.folder):
                discard(job.folder)
    for _ in run_side_by_side(jobs, train_job, LocalPool(workers=2)):
        pass
    summary: dict[str, dict[str, float] | float] = {}
    for job in jobs:
        rows = [row for row in job.folder.latest_rows(overrides={}) if row.metric == job.config.headline_metric]
        summary[job.label] = {str(row.length): row.rate for row in rows if row.length in LENGTHS}
    summary["seconds"] = max(job.folder.read_run()["wall_seconds"] for job in jobs)
    write_atomically(out / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())
    title = "Parity with scratchpad: trained on lengths 10–40"
    figure = draw_length_curves(curves_of([job.folder for job in jobs]), title)
    save_figure(figure, out / "length_curves.png", overwrite=True)
    return summary


def summary_in_words(summary: dict[str, dict[str, float] | float], out: Path) -> str:
    ppc, baseline = summary["ppc"], summary["baseline"]
    assert isinstance(ppc, dict)
    assert isinstance(baseline, dict)
    lines = ["length    PPC (tokens and ids)    baseline (tokens)"]
    for length in ppc:
        note = "  <- training ends here" if length == "40" else "  <- twice as long" if length == "80" else ""
        lines.append(f"{length:>6}    {ppc[length]:>20.3f}    {baseline[length]:>17.3f}{note}")
    lines.append(f"{summary['seconds']:.0f} seconds; the figure is {out / 'length_curves.png'}")
    return "\n".join(lines)
