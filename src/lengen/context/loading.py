"""A model and its tokenizer from disk: a Hugging Face folder, a GGUF file, or a run of `lengen lm train`."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from lengen.context.causal_model import CausalModel
from lengen.language.pretrained import load_pretrained, load_pretrained_tokenizer
from lengen.language.trained import load_language_model, run_tokenizer
from lengen.results import RunFolder


class LoadedModel(NamedTuple):
    model: CausalModel
    tokenizer: Any  # a tokenizers.Tokenizer


def load_model(path: Path) -> LoadedModel:
    """The model in fp32 with its tokenizer; weights from safetensors or GGUF alone, and no code from the folder."""
    if (path / "run.json").is_file():
        return _load_own(path)
    tokenizer = tokenizer_of(path)
    from lengen.context.hf_model import HuggingFaceModel

    # Never unpickle: weights of a folder are safetensors.
    use_safetensors = True if path.is_dir() else None
    loaded, info = load_pretrained(
        "AutoModelForCausalLM", path, dtype=torch.float32, use_safetensors=use_safetensors, output_loading_info=True
    )
    if info["missing_keys"]:  # transformers would go on with random numbers in their place
        missing = sorted(info["missing_keys"])
        raise ValueError(
            f"{path} lacks {len(missing)} of the model's weights ({missing[0]}, …); give a whole copy of it"
        )
    return _checked(LoadedModel(HuggingFaceModel(loaded, name_of(path)), tokenizer))


def tokenizer_of(path: Path) -> Any:
    """The tokenizer alone, to show text without loading weights."""
    if (path / "run.json").is_file():
        return run_tokenizer(RunFolder(path))
    if not (path / "config.json").is_file() and path.suffix != ".gguf":
        raise ValueError(
            f"{path} is no model: give a Hugging Face folder (config.json), a .gguf file, or a run of `lengen lm train`"
        )
    if not path.exists():
        raise ValueError(f"there is no model {path}; give a folder or a .gguf file")
    return load_pretrained_tokenizer(path)


def name_of(path: Path) -> str:
    return path.stem if path.suffix == ".gguf" else path.resolve().name


def _load_own(path: Path) -> LoadedModel:
    from lengen.context.decoder_model import DecoderModel

    decoder, tokenizer, _ = load_language_model(path)
    return _checked(LoadedModel(DecoderModel(decoder, name_of(path)), tokenizer))


def _checked(loaded: LoadedModel) -> LoadedModel:
    largest = max(loaded.tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
    if largest >= loaded.model.vocab_size:
        raise ValueError(
            f"the tokenizer of {loaded.model.name} has tokens up to {largest} and the model ends at "
            f"{loaded.model.vocab_size - 1}; give the model its own tokenizer"
        )
    return loaded
