"""What `transformers` loads from disk, a tokenizer or a model: a Hugging Face folder or a GGUF file."""

import struct
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError

from lengen.extras import how_to_install
from lengen.language.extra import language_module

# What damaged files and folders of something else have been seen to raise: transformers checks little.
UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    RuntimeError,
    TypeError,
    AttributeError,
    SafetensorError,
    struct.error,
)


def load_pretrained(kind: Literal["AutoTokenizer", "AutoModelForCausalLM"], path: Path, **arguments: Any) -> Any:
    """From this disk alone, and without running any code of the folder."""
    transformers = language_module("transformers")
    transformers.utils.logging.disable_progress_bar()
    # Left open, transformers asks at the keyboard whether to run the folder's own code.
    place: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    folder = path
    if not path.is_dir():
        language_module("gguf")
        folder, place["gguf_file"] = path.parent, path.name
    try:
        return getattr(transformers, kind).from_pretrained(str(folder), **place, **arguments)
    except ImportError as error:
        how = how_to_install("language")
        raise ValueError(f"{path} needs a package that is missing ({_first_line(error)}); {how}") from error
    except UNREADABLE as error:
        raise ValueError(
            f"transformers cannot load {path} ({_first_line(error)}); give a whole copy of it, or another"
        ) from error


def load_pretrained_tokenizer(path: Path) -> Any:
    """The `tokenizers.Tokenizer` of a folder or a GGUF file."""
    tokenizer = getattr(load_pretrained("AutoTokenizer", path), "backend_tokenizer", None)
    if tokenizer is None:
        raise ValueError(f"the tokenizer of {path} has no fast version; add its tokenizer.json to the folder")
    if not tokenizer.encode("a text", add_special_tokens=False).ids:  # transformers makes up an empty one
        raise ValueError(f"{path} holds no tokenizer; add its tokenizer.json")
    return for_whole_texts(tokenizer)


def for_whole_texts(tokenizer: Any) -> Any:
    """The same tokenizer, which neither cuts nor pads; "</s>" in a text is four characters to it, not the end."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
