"""What a language run costs, in the terms of `lengen plan`."""

from lengen.language.config import LanguageConfig
from lengen.language.packed import CorpusStamp
from lengen.language.presets import PAPER_VOCABULARY, language_preset
from lengen.positions.scheme import Rope
from lengen.train.cost import Example, Workload


def workload_of(config: LanguageConfig) -> Workload:
    encoder = config.scheme.encoder
    return Workload(
        config.model,
        vocab_size=config.corpus.vocab_size,
        # As if no token of a text came twice in a batch.
        examples=(Example(config.context, config.context, config.batch_size * config.context),),
        batch_size=config.batch_size,
        steps=config.steps,
        microbatch=config.microbatch_size,
        rotary_fraction=encoder.rotary_fraction if isinstance(encoder, Rope) else 0.0,
        precision=config.precision,
    )


PAPER_CORPUS = CorpusStamp("c4", PAPER_VOCABULARY, end_of_text=2, digest="")  # Llama-2's </s>
LANGUAGE = {f"language-{name}": workload_of(language_preset(name, "paper", PAPER_CORPUS)) for name in ("short", "long")}
