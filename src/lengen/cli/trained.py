"""Loading a trained run for a command, with settings that may differ from training."""

from typing import Any, NamedTuple

from lengen.cli.overrides import Overrides, override_parts
from lengen.config import config_from_dict
from lengen.model.config import PLAIN_ATTENTION
from lengen.model.decoder import Decoder
from lengen.positions import Scheme
from lengen.results import RunFolder
from lengen.tasks import Task
from lengen.train.checkpoint import Progress, latest_checkpoint, load_checkpoint


class RunUnderTest(NamedTuple):
    """A trained decoder under the settings of a test. The lengths it was trained on need not fit them."""

    task: Task
    scheme: Scheme
    decoder: Decoder
    progress: Progress
    overrides: dict[str, Any]  # what differs from training

    def check_length(self, length: int) -> None:
        self.task.check_length(length)
        self.scheme.check_test_length(self.task, length)


def load_with_overrides(folder: RunFolder, overrides: Overrides) -> RunUnderTest:
    """The run's decoder under overridden settings, which must not change the shape of any weight."""
    trained = config_from_dict(folder.read_run()["config"])
    for name in overrides.get("model", {}):
        if name not in PLAIN_ATTENTION:
            raise ValueError(
                f"--model.{name} cannot change after training, as {' and '.join(PLAIN_ATTENTION)} can; drop it"
            )
    task, scheme, model = override_parts(trained, overrides)
    if len(task.vocabulary) != len(trained.task.vocabulary):
        raise ValueError(
            f"the model was trained with {len(trained.task.vocabulary)} tokens and these --task settings have "
            f"{len(task.vocabulary)}; drop the setting that changes the vocabulary"
        )
    if scheme.num_ids != trained.scheme.num_ids:
        raise ValueError("--assigner.max_position_id cannot change after training; drop it")
    parts = {
        "task": (trained.task, task),
        "assigner": (trained.scheme.assigner, scheme.assigner),
        "encoder": (trained.scheme.encoder, scheme.encoder),
        "model": (trained.model, model),
    }
    changed = {
        f"{section}.{name}": getattr(parts[section][1], name)
        for section, fields in overrides.items()
        for name in fields
        if getattr(parts[section][1], name) != getattr(parts[section][0], name)
    }
    decoder = Decoder(model, scheme, len(task.vocabulary))
    progress = load_checkpoint(latest_checkpoint(folder), decoder)
    return RunUnderTest(task, scheme, decoder, progress, changed)
