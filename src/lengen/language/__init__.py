"""Real text: corpora, tokenizers, packed data, and the language models of Sec. 5.3.

`load_language_model` is the way in for whoever wants a trained model; it is loaded on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lengen.language.trained import load_language_model

__all__ = ["load_language_model"]


def __getattr__(name: str) -> Any:
    if name != "load_language_model":
        raise AttributeError(f"module 'lengen.language' has no attribute {name!r}")
    from lengen.language.trained import load_language_model

    return load_language_model
