"""Loading a trained run for a command, with settings that may differ from training."""

from lengen.cli.overrides import Overrides, apply_overrides
from lengen.config import RunConfig, config_from_dict
from lengen.model.config import PLAIN_ATTENTION
from lengen.model.decoder import Decoder
from lengen.results import RunFolder
from lengen.train.checkpoint import Progress, latest_checkpoint, load_checkpoint
from lengen.train.loop import build_decoder


def load_with_overrides(folder: RunFolder, overrides: Overrides) -> tuple[RunConfig, Decoder, Progress]:
    """The run's decoder under overridden settings, which must not change the shape of any weight."""
    trained = config_from_dict(folder.read_run()["config"])
    for name in overrides.get("model", {}):
        if name not in PLAIN_ATTENTION:
            raise ValueError(
                f"--model.{name} cannot change after training, as {' and '.join(PLAIN_ATTENTION)} can; drop it"
            )
    # Lengths that the training run was tested at need not fit the settings of this test.
    config = apply_overrides(trained, overrides, {"eval_lengths": ()})
    if len(config.task.vocabulary) != len(trained.task.vocabulary):
        raise ValueError(
            f"the model was trained with {len(trained.task.vocabulary)} tokens and these --task settings have "
            f"{len(config.task.vocabulary)}; drop the setting that changes the vocabulary"
        )
    if config.scheme.num_ids != trained.scheme.num_ids:
        raise ValueError("--assigner.max_position_id cannot change after training; drop it")
    decoder = build_decoder(config)
    return config, decoder, load_checkpoint(latest_checkpoint(folder), decoder)
