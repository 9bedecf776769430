"""A model and its tokenizer from disk: a Hugging Face folder, a GGUF file, or a run of `lengen lm train`."""

import importlib
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError

from lengen.context.causal_model import CausalModel
from lengen.results import RunFolder

EXTRA_HINT = "install it with `pip install -e '.[language]'` in lengen's folder"


class LoadedModel(NamedTuple):
    model: CausalModel
    tokenizer: Any  # a tokenizers.Tokenizer


def load_model(path: Path) -> LoadedModel:
    """The model in fp32 with its tokenizer; weights from safetensors or GGUF alone, and no code from the folder."""
    if (path / "run.json").is_file():
        return _load_own(path)
    tokenizer = load_tokenizer(path)
    from lengen.context.hf_model import HuggingFaceModel

    transformers = _transformers()
    model = HuggingFaceModel(
        _from_pretrained(transformers.AutoModelForCausalLM, path, dtype=torch.float32),
        name_of(path),
    )
    return _checked(LoadedModel(model, tokenizer))


def load_tokenizer(path: Path) -> Any:
    """The tokenizer alone, to show text without loading weights."""
    if (path / "run.json").is_file():
        trained = importlib.import_module("lengen.language.trained")  # it needs extras that other models do not
        return trained.run_tokenizer(RunFolder(path))
    if not (path / "config.json").is_file() and path.suffix != ".gguf":
        raise ValueError(
            f"{path} is no model: give a Hugging Face folder (config.json), a .gguf file, or a run of `lengen lm train`"
        )
    wrapped = _from_pretrained(_transformers().AutoTokenizer, path)
    tokenizer = getattr(wrapped, "backend_tokenizer", None)
    if tokenizer is None:
        raise ValueError(f"the tokenizer of {path} has no fast version; add its tokenizer.json to the folder")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def name_of(path: Path) -> str:
    return path.stem if path.suffix == ".gguf" else path.resolve().name


def _load_own(path: Path) -> LoadedModel:
    from lengen.context.decoder_model import DecoderModel

    language = importlib.import_module("lengen.language")  # it needs extras that other models do not
    decoder, tokenizer, _ = language.load_language_model(path)
    return _checked(LoadedModel(DecoderModel(decoder, name_of(path)), tokenizer))


def _checked(loaded: LoadedModel) -> LoadedModel:
    largest = max(loaded.tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
    if largest >= loaded.model.vocab_size:
        raise ValueError(
            f"the tokenizer of {loaded.model.name} has tokens up to {largest} and the model ends at "
            f"{loaded.model.vocab_size - 1}; give the model its own tokenizer"
        )
    return loaded


def _transformers() -> Any:
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise ValueError(f"a model from disk needs transformers; {EXTRA_HINT}") from error
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _from_pretrained(auto_class: Any, path: Path, **arguments: Any) -> Any:
    if not path.exists():
        raise ValueError(f"there is no model {path}; give a folder or a .gguf file")
    place: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if path.suffix == ".gguf":
        folder, place["gguf_file"] = path.parent, path.name
    else:
        folder = path
        if arguments:
            place["use_safetensors"] = True  # never unpickle
    try:
        return auto_class.from_pretrained(str(folder), **place, **arguments)
    except ImportError as error:
        raise ValueError(f"{path} needs a package that is missing ({_first_line(error)}); {EXTRA_HINT}") from error
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError, SafetensorError) as error:
        raise ValueError(f"transformers cannot load {path} ({_first_line(error)}); is the folder whole?") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
