"""Models for which leaving a token out is not masking it are refused, at the length that is asked for."""

import pytest
import torch
from tiny_models import ARCHITECTURES, VOCAB_SIZE, tiny_decoder, tiny_hf
from transformers import (
    BertConfig,
    BertLMHeadModel,
    FalconConfig,
    FalconForCausalLM,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaForCausalLM,
    OlmoConfig,
    OlmoForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedModel,
)

from lengen.bench.influence import masked_loop
from lengen.context.decoder_model import DecoderModel
from lengen.context.hf_model import HuggingFaceModel
from lengen.context.influence import leave_one_out
from lengen.context.probe import check_method
from lengen.context.window import Window
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions.assign import Contiguous
from lengen.positions.scheme import LearnedAbsolute, Scheme

SHARED = {"vocab_size": VOCAB_SIZE, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}


def opt() -> PreTrainedModel:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 64}
    special = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    return OPTForCausalLM(OPTConfig(vocab_size=VOCAB_SIZE, init_std=0.3, word_embed_proj_dim=32, **sizes, **special))


def olmo() -> PreTrainedModel:
    return OlmoForCausalLM(OlmoConfig(**SHARED, **SIZES))


def without_cache() -> PreTrainedModel:
    return OpenAIGPTLMHeadModel(OpenAIGPTConfig(vocab_size=VOCAB_SIZE, n_embd=32, n_layer=3, n_head=4))


def looking_ahead() -> PreTrainedModel:
    return BertLMHeadModel(BertConfig(vocab_size=VOCAB_SIZE, initializer_range=0.3, **SIZES))


def with_local_attention() -> PreTrainedModel:
    kinds = [[["global", "local"], 2]]
    config = GPTNeoConfig(**SHARED, hidden_size=32, num_layers=4, num_heads=4, attention_types=kinds, window_size=16)
    return GPTNeoForCausalLM(config)


def with_distances_by_slot() -> PreTrainedModel:
    return FalconForCausalLM(FalconConfig(**SHARED, **SIZES, alibi=True))


class Unmasked(LlamaForCausalLM):
    """Accepts a mask and takes no notice of it."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, **arguments):
        ones = torch.ones_like(attention_mask)
        return super().forward(input_ids=input_ids, attention_mask=ones, position_ids=position_ids, **arguments)


def without_mask() -> PreTrainedModel:
    return Unmasked(tiny_hf("llama").config)


def adapter(model: PreTrainedModel) -> HuggingFaceModel:
    return HuggingFaceModel(model, "tiny")


@pytest.mark.parametrize("long", [3, 4, 23, 40, 65])
@pytest.mark.parametrize("architecture", [*ARCHITECTURES, opt, olmo])
def test_models_with_plain_causal_attention_pass(architecture, long):
    torch.manual_seed(0)
    model = architecture() if callable(architecture) else tiny_hf(architecture)
    check_method(adapter(model), Window(short=1, long=long))


@pytest.mark.parametrize("build", [without_cache, looking_ahead, with_local_attention, with_distances_by_slot])
def test_others_give_other_influences_or_ids_that_do_nothing(build):
    """The sibling: what the refusals below prevent."""
    torch.manual_seed(0)
    model, window = build().eval(), Window(short=6, long=40)
    examples = torch.randint(0, VOCAB_SIZE, (2, 40), generator=torch.Generator().manual_seed(1))
    if build is with_distances_by_slot:
        logits = [
            adapter(model).last_logits(examples, ids.expand(2, -1)) for ids in (torch.arange(40), 9 * torch.arange(40))
        ]
        assert torch.equal(*logits)
    else:
        difference = leave_one_out(adapter(model), examples, window, 1) - masked_loop(model, examples, window)
        assert difference.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (without_cache, r"tiny \(OpenAIGPTLMHeadModel\) keeps no cache of keys and values for 39 tokens"),
        (looking_ahead, "lets tokens see later ones"),
        (with_local_attention, "does not heed a mask and position ids at 39 tokens"),
        (with_distances_by_slot, "ignores position ids"),
        (without_mask, "does not heed a mask"),
    ],
)
def test_others_are_refused(build, message):
    torch.manual_seed(0)
    with pytest.raises(ValueError, match=message) as refusal:
        check_method(adapter(build()), Window(short=6, long=40))
    assert "; choose a model with plain causal attention" in str(refusal.value)


def test_local_attention_passes_where_its_window_holds_everything():
    torch.manual_seed(0)
    check_method(adapter(with_local_attention()), Window(short=6, long=17))


def test_ours_reads_what_its_table_holds_and_any_number_without_one():
    check_method(DecoderModel(tiny_decoder(max_position_id=16), "ours"), Window(short=9, long=23))
    scheme = Scheme(Contiguous(max_position_id=16), LearnedAbsolute())
    bounded = DecoderModel(Decoder(ModelConfig(num_layers=1, num_heads=2, width=16), scheme, VOCAB_SIZE), "bounded")
    check_method(bounded, Window(short=9, long=17))
    with pytest.raises(ValueError, match="bounded reads 16 tokens at most, and --long 18 needs 17"):
        check_method(bounded, Window(short=9, long=18))


def test_a_model_whose_tokens_hardly_matter_is_judged_as_well():
    """Attention is nearly uniform at the usual small weights, and one token of many does next to nothing."""
    torch.manual_seed(0)
    with pytest.raises(ValueError, match="lets tokens see later ones"):
        check_method(adapter(BertLMHeadModel(BertConfig(vocab_size=VOCAB_SIZE, **SIZES))), Window(short=6, long=65))
    config = GPTNeoXConfig(**SHARED | {"initializer_range": 0.02}, **SIZES)
    check_method(adapter(GPTNeoXForCausalLM(config)), Window(short=6, long=65))
