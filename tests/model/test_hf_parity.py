"""The same logits as GPT-NeoX in transformers, both ways, on any ids. Tolerance 1e-5 in fp32."""

from dataclasses import replace

import pytest
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from lengen.batch import sample_batch
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.model.hf import from_hf, to_hf
from lengen.positions import Scheme, scheme_named
from lengen.positions.assign import Contiguous, Coupled, Pose
from lengen.positions.scheme import Rope
from lengen.seeding import rng_for
from lengen.tasks import VariableAssignment

TOLERANCE = 1e-5
TASK = VariableAssignment(depth=2, num_variables=40)
ROPES = {
    "partial": Rope(),
    "full": Rope(rotary_fraction=1.0),
    "other-base": Rope(rotary_fraction=0.5, base=500.0),
    "linear": Rope(interpolation="linear", factor=4.0),
    "ntk": Rope(rotary_fraction=0.5, interpolation="ntk", factor=4.0),
    "yarn": Rope(rotary_fraction=1.0, interpolation="yarn", factor=4.0, trained_max_id=64),
}
ASSIGNERS = {  # repeated and non-contiguous ids among them
    "contiguous": Contiguous(),
    "pose": Pose(),
    "coupled": Coupled(),
}


def make_decoder(scheme: Scheme) -> Decoder:
    return Decoder(ModelConfig(num_layers=3, num_heads=4, width=64), scheme, len(TASK.vocabulary)).initialize(0)


def ids_and_tokens(scheme: Scheme) -> tuple[torch.Tensor, torch.Tensor]:
    batch = sample_batch(TASK, scheme, rng_for(0, "test"), 8, 24, training=True)
    return batch.token_ids, batch.position_ids


@torch.no_grad()
def hf_logits(model: GPTNeoXForCausalLM, tokens: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    # The mask of ones matters: without it every jump in the ids starts a new packed sequence.
    return model(input_ids=tokens, position_ids=ids, attention_mask=torch.ones_like(tokens)).logits


@torch.no_grad()
def our_logits(decoder: Decoder, tokens: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return decoder(tokens, ids).token_logits


@pytest.mark.parametrize("rope", ROPES.values(), ids=ROPES)
@pytest.mark.parametrize("assigner", ASSIGNERS.values(), ids=ASSIGNERS)
def test_to_hf_keeps_the_logits(assigner, rope):
    scheme = Scheme(assigner, rope)
    decoder = make_decoder(scheme)
    tokens, ids = ids_and_tokens(scheme)
    ours, theirs = our_logits(decoder, tokens, ids), hf_logits(to_hf(decoder), tokens, ids)
    assert (ours - theirs).abs().max() < TOLERANCE


@pytest.mark.parametrize("assigner", ASSIGNERS.values(), ids=ASSIGNERS)
def test_to_hf_parity_can_fail(assigner):
    scheme = Scheme(assigner, Rope())
    decoder = make_decoder(scheme)
    tokens, ids = ids_and_tokens(scheme)
    wrong = ids.clone()
    wrong[:, -1] += 1  # one id of one token
    assert (our_logits(decoder, tokens, ids) - hf_logits(to_hf(decoder), tokens, wrong)).abs().max() > 100 * TOLERANCE


def test_from_hf_inverts_to_hf():
    decoder = make_decoder(scheme_named("rope"))
    back = from_hf(to_hf(decoder))
    for name, parameter in decoder.named_parameters():
        assert torch.equal(parameter, back.get_parameter(name)), name


def test_from_hf_keeps_the_logits_of_a_foreign_model():
    foreign = to_hf(make_decoder(scheme_named("rope")))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in foreign.parameters():  # biases and norms too, which start at 0 and 1
            parameter.normal_(0.0, 0.1, generator=generator)
    tokens, ids = ids_and_tokens(Scheme(Coupled(), Rope()))
    difference = (our_logits(from_hf(foreign), tokens, ids) - hf_logits(foreign, tokens, ids)).abs().max()
    assert difference < TOLERANCE


def test_an_odd_part_of_a_head_is_rounded_to_what_turns(tmp_path):
    decoder = Decoder(ModelConfig(1, 4, 80, init_scale=2.0), scheme_named("rope"), 20).initialize(0)  # 5 of 20 a head
    tokens, ids = torch.randint(20, (2, 9)), torch.arange(9).expand(2, -1)
    theirs = to_hf(decoder)(tokens, attention_mask=torch.ones_like(tokens), position_ids=ids).logits
    assert torch.allclose(theirs, decoder(tokens, ids).token_logits, atol=TOLERANCE)


def test_an_odd_foreign_part_is_refused():
    config = GPTNeoXConfig(vocab_size=20, hidden_size=80, num_hidden_layers=1, num_attention_heads=4)
    config.intermediate_size = 320
    with pytest.raises(ValueError, match=r"partial_rotary_factor=0\.25"):
        from_hf(GPTNeoXForCausalLM(config))


def test_a_half_precision_model_is_computed_in_float32():
    decoder = make_decoder(scheme_named("rope"))
    tokens, ids = torch.randint(20, (2, 9)), torch.arange(9).expand(2, -1)
    half = to_hf(decoder).to(torch.bfloat16)
    logits = from_hf(half)(tokens, ids).token_logits
    assert logits.dtype == torch.float32
    assert torch.allclose(logits, half.float()(tokens, position_ids=ids, use_cache=True).logits, atol=TOLERANCE)


def test_saving_and_loading_through_hf(tmp_path):
    decoder = make_decoder(scheme_named("pose-rope"))
    to_hf(decoder).save_pretrained(tmp_path)
    back = from_hf(GPTNeoXForCausalLM.from_pretrained(tmp_path))
    tokens, ids = ids_and_tokens(scheme_named("pose-rope"))
    assert torch.equal(our_logits(decoder, tokens, ids), our_logits(back, tokens, ids))


@pytest.mark.parametrize("scheme", ["ppc", "shifted-ape", "alibi", "fire", "nope", "ppc-rope"])
def test_what_hf_cannot_express_is_refused(scheme):
    with pytest.raises(ValueError, match="cannot be converted"):
        to_hf(make_decoder(scheme_named(scheme)))


def test_unsupported_hf_models_are_refused():
    model = to_hf(make_decoder(scheme_named("rope")))
    model.config.use_parallel_residual = False
    with pytest.raises(ValueError, match="use_parallel_residual=False"):
        from_hf(model)


def test_the_papers_size_builds():
    from lengen.model.config import PAPER_MODEL

    with torch.device("meta"):
        decoder = Decoder(PAPER_MODEL, scheme_named("ppc"), 204)
    assert (PAPER_MODEL.num_layers, PAPER_MODEL.num_heads, PAPER_MODEL.width) == (12, 16, 1024)
    assert round(PAPER_MODEL.init_std, 6) == 0.02
    blocks = 12 * (12 * 1024**2 + 13 * 1024)  # attention 4 D², MLP 8 D², their biases and two norms
    tables = 2 * 204 * 1024 + 2 * 257 * 1024  # tokens and ids, in and out
    assert decoder.num_parameters() == blocks + tables + 2 * 1024
    assert replace(PAPER_MODEL, width=512).init_std > PAPER_MODEL.init_std
