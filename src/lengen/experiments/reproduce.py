"""Run what a figure needs and does not have yet; every finished run adds its rows at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock

from lengen.config import RunConfig
from lengen.experiments.figures import arms_named, figure_named, measures_of, num_seeds_of
from lengen.experiments.presets import preset_config
from lengen.results import Row, RunFolder
from lengen.results.schema import Place, place_of
from lengen.results.sweep import SweepRow, append_sweep_rows, read_sweep_rows, sweep_file
from lengen.scale import Scale
from lengen.train.cost import CPU_CORE, cost_of, workload_of
from lengen.train.engines import EngineName, open_engine
from lengen.train.launch import Job, run_side_by_side, train_job
from lengen.train.optimise import RunIsHeld


@dataclass(frozen=True)
class SweepJob(Job):
    """A run of a figure. Where its rows go is the sweep's business; the run only measures."""

    figure: str = ""
    preset: str = ""
    scale: str = ""


def plan(names: Sequence[str], scale: Scale, num_seeds: int | None, out: Path) -> list[SweepJob]:
    """The runs of figures and single arms that are missing, one seed after the other: cut short, it is balanced."""
    arms = dict.fromkeys(arm for name in names for arm in arms_named(name))
    measured = {figure: _measured(out, figure, scale) for figure, _ in arms}
    jobs = []
    for figure, preset in arms:
        base = preset_config(preset, scale)
        for seed in range(num_seeds or num_seeds_of(figure, preset, scale)):
            config = replace(base, seed=seed)
            if not _is_whole(measured[figure].get((config.arm, seed), set()), figure, config):
                folder = RunFolder(out / "work" / f"{preset}-{config.run_id}")
                jobs.append(SweepJob(f"{preset} seed {seed}", config, folder, figure, preset, scale))
    return sorted(jobs, key=lambda job: job.config.seed)


def _measured(out: Path, figure: str, scale: str) -> dict[tuple[str, int], set[Place]]:
    """What there are rows of, by arm and seed."""
    measured: dict[tuple[str, int], set[Place]] = {}
    for entry in read_sweep_rows(out, figure):
        if entry.scale != scale:
            raise ValueError(
                f"{sweep_file(out, figure)} has rows of --scale {entry.scale}; choose another --out for --scale {scale}"
            )
        measured.setdefault((entry.arm, entry.train_seed), set()).add(entry.row.place)
    return measured


def _is_whole(measured: set[Place], figure: str, config: RunConfig) -> bool:
    """Whether a run has every row of its figure: one that died while writing them has not."""
    metrics = {metric for _, metric, _ in measured}
    return bool(metrics) and all(
        place_of(length, metric, measure.overrides) in measured
        for measure in measures_of(figure_named(figure), config)
        for length in measure.lengths
        for metric in metrics
    )


def core_hours_of(jobs: Sequence[SweepJob]) -> list[float]:
    """What training each is expected to take on one core; seeds of one arm take the same."""
    by_arm: dict[str, float] = {}
    for job in jobs:
        if job.config.arm not in by_arm:
            by_arm[job.config.arm] = cost_of(workload_of(job.config), CPU_CORE).hours
    return [by_arm[job.config.arm] for job in jobs]


def reproduce(
    jobs: Sequence[SweepJob], workers: int, out: Path, engine: EngineName = "local", address: str | None = None
) -> list[SweepJob]:
    """Do the planned runs; the rows of each are appended as it finishes. Return those that another sweep is doing."""
    opened = open_engine(engine, workers, address)
    RunFolder(out / "work").create()
    left_alone = []
    for job, rows in run_side_by_side(jobs, train_and_measure, opened):
        assert isinstance(job, SweepJob)
        if not rows:
            left_alone.append(job)
            continue
        with FileLock(out / "work" / "rows.lock"):  # another sweep may have done this run since it was planned
            there = _measured(out, job.figure, job.scale).get((job.config.arm, job.config.seed), set())
            append_sweep_rows(out, job.figure, _sweep_rows(job, [row for row in rows if row.place not in there]))
    return left_alone


def _sweep_rows(job: SweepJob, rows: list[Row]) -> list[SweepRow]:
    record = job.folder.read_run()
    return [
        SweepRow(
            figure=job.figure,
            preset=job.preset,
            scale=job.scale,
            arm=job.config.arm,
            train_seed=job.config.seed,
            wall_seconds=record["wall_seconds"],
            version=record["versions"]["lengen"],
            commit=record["commit"],
            row=row,
        )
        for row in rows
    ]


def train_and_measure(job: Job) -> list[Row] | None:
    """In a worker: train to the last step, then measure the figure's curves by the headline metric.

    None if it was stopped, no rows if another process is training this run.
    """
    from lengen.evaluate.length_curve import length_curve
    from lengen.train.loop import load_decoder

    assert isinstance(job, SweepJob)
    # The figure's own curves replace the evaluation that ends a single run.
    try:
        if train_job(replace(job, config=replace(job.config, eval_lengths=()))) is None:
            return None
    except RunIsHeld:
        return []
    _, decoder, progress = load_decoder(job.folder)
    rows = []
    figure = figure_named(job.figure)
    for measure in measures_of(figure, job.config):
        config = measure.config
        metric = config.headline_metric if figure.only_headline else None
        curve = length_curve(decoder, config.task, measure.lengths, config.eval_examples, config.eval_seed, only=metric)
        rows += [
            Row(
                progress.run,
                progress.step,
                m.length,
                m.metric,
                m.correct,
                m.total,
                config.eval_seed,
                "one-pass",
                measure.overrides,
            )
            for m in curve
        ]
    return rows
