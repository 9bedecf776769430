"""A trained language model from its folder."""

from pathlib import Path
from typing import Any

from lengen.language.config import LanguageConfig, config_from_dict
from lengen.language.fetch import cache_folder
from lengen.language.packed import TOKENIZER_FILE
from lengen.language.tokenizer import load_tokenizer
from lengen.language.training import build_language_model
from lengen.model.decoder import Decoder
from lengen.results import RunFolder
from lengen.train.checkpoint import Progress, latest_checkpoint, load_checkpoint


def load_language_run(folder: RunFolder) -> tuple[LanguageConfig, Decoder, Progress]:
    config = config_from_dict(folder.read_run()["config"])
    decoder = build_language_model(config)
    return config, decoder, load_checkpoint(latest_checkpoint(folder), decoder)


def load_language_model(path: Path) -> tuple[Decoder, Any, LanguageConfig]:
    """(decoder, tokenizer, config) of a run of `lengen lm train`; the tokenizer is a `tokenizers.Tokenizer`."""
    folder = RunFolder(Path(path))
    config, decoder, _ = load_language_run(folder)
    return decoder, run_tokenizer(folder), config


def run_tokenizer(folder: RunFolder) -> Any:
    """The tokenizer that was put beside the weights."""
    return load_tokenizer(str(tokenizer_file(folder)), cache_folder())


def tokenizer_file(folder: RunFolder) -> Path:
    path = folder.path / TOKENIZER_FILE
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy it from the corpus that the run was trained on")
    return path
