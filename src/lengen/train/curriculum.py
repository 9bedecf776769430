"""From easy to hard: a task's stages, taken one after the other as the training accuracy allows."""

from dataclasses import dataclass

from lengen.config import RunConfig
from lengen.tasks import Task

SMOOTHING = 0.05  # of the running accuracy: a stage lasts at least about 60 steps at a threshold of 0.95


@dataclass(frozen=True)
class Curriculum:
    """Where the curriculum stands; part of a checkpoint, since it depends on the training so far."""

    stage: int
    running_accuracy: float = 0.0

    @classmethod
    def start(cls, config: RunConfig) -> "Curriculum":
        return cls(stage=1 if config.curriculum_threshold else config.task.num_stages)

    def after_step(self, accuracy: float, config: RunConfig) -> "Curriculum":
        if self.stage == config.task.num_stages:
            return self
        running = self.running_accuracy + SMOOTHING * (accuracy - self.running_accuracy)
        return Curriculum(self.stage + 1) if running > config.curriculum_threshold else Curriculum(self.stage, running)

    def task(self, config: RunConfig) -> Task:
        return config.task.at_stage(self.stage)
