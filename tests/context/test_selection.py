"""Orders and curves, against brute force."""

from itertools import permutations

import pytest
import torch
from tiny_models import VOCAB_SIZE, tiny_decoder

from lengen.context.decoder_model import DecoderModel
from lengen.context.selection import at_random, by_influence, curve_points, greedily, most_attended, most_recent
from lengen.context.subsets import subset_losses
from lengen.context.text import draw_examples
from lengen.context.window import Window

WINDOW = Window(short=8, long=16)


def test_the_token_whose_absence_hurts_most_comes_first():
    assert by_influence(torch.tensor([1.0, 3.0, 2.0, 3.0])) == [1, 3, 2, 0]


def test_random_orders_are_permutations_of_their_own():
    orders = {tuple(at_random(9, seed=0, text=text)) for text in range(20)}
    assert len(orders) == 20
    assert all(sorted(order) == list(range(9)) for order in orders)
    assert at_random(9, 0, 3) == at_random(9, 0, 3) != at_random(9, 1, 3)


def test_recent_counts_down():
    assert most_recent(4) == [3, 2, 1, 0]


def test_attended_orders_far_tokens_alone(examples, window):
    model = DecoderModel(tiny_decoder(), "ours")
    attention = model.attention(examples[:, :-1], torch.arange(1, 23).expand(3, -1), 1)[:, 0]
    for row, order in enumerate(most_attended(model, examples, window, max_batch_tokens=30)):
        assert sorted(order) == list(range(window.num_far))
        weights = [float(attention[row, token]) for token in order]
        assert weights == sorted(weights, reverse=True)


def test_greedy_is_the_best_at_each_step_and_not_always_the_best_pair(window):
    examples = torch.randint(0, VOCAB_SIZE, (12, window.long), generator=torch.Generator().manual_seed(2))
    model = DecoderModel(tiny_decoder(), "ours")
    pairs = list(permutations(range(window.num_far), 2))
    misses = 0
    for row in range(len(examples)):
        chosen = greedily(model, examples, row, window, 2, max_batch_tokens=500)
        alone = subset_losses(model, examples, window, [(row, frozenset({t})) for t in range(13)], 500)
        assert chosen[0] == int(alone.argmin())
        losses = subset_losses(model, examples, window, [(row, frozenset(pair)) for pair in pairs], 500)
        with_first = {pair[1]: float(loss) for pair, loss in zip(pairs, losses, strict=True) if pair[0] == chosen[0]}
        assert chosen[1] == min(with_first, key=with_first.__getitem__)
        misses += float(losses.min()) < with_first[chosen[1]] - 1e-6
    assert misses > 0  # otherwise the test above could not tell greedy from exhaustive


def test_curves_begin_at_none_and_end_at_all():
    assert curve_points(63, 5, "some") == (0, 1, 2, 5, 10, 20, 50, 63)
    assert curve_points(127, 7, "some") == (0, 1, 2, 5, 7, 10, 20, 50, 100, 127)
    assert curve_points(3, 3, "full") == (0, 1, 2, 3)
    assert curve_points(1, 1, "some") == (0, 1)
    assert curve_points(127, 5, "none") == (0, 5, 127)


def test_examples_are_windows_of_the_text_that_do_not_overlap():
    tokens = [list(range(1000))]
    examples = draw_examples(tokens, "t", WINDOW, 62, seed=0)
    assert sorted(examples.starts.tolist()) == [16 * window for window in range(62)]
    assert torch.equal(examples.tokens, examples.starts[:, None] + torch.arange(16))
    few = draw_examples(tokens, "t", WINDOW, 5, seed=0)
    assert few.starts.tolist() == examples.starts[:5].tolist()
    assert draw_examples(tokens, "t", WINDOW, 5, seed=1).starts.tolist() != few.starts.tolist()


def test_windows_of_several_targets_are_longer_and_fewer():
    window = Window(short=8, long=16, num_targets=5)
    examples = draw_examples([list(range(1000))], "t", window, 250, seed=0)
    assert sorted(examples.starts.tolist()) == [20 * number for number in range(50)]
    assert examples.tokens.shape == (50, 20)
    with pytest.raises(ValueError, match="--num-examples 255 needs 51 windows of 20 tokens, and t has 50"):
        draw_examples([list(range(1000))], "t", window, 255, seed=0)


def test_no_window_crosses_from_one_document_to_the_next():
    documents = [list(range(0, 20)), list(range(20, 25)), list(range(25, 60))]
    examples = draw_examples(documents, "t", WINDOW, 3, seed=0)
    assert sorted(examples.starts.tolist()) == [0, 25, 41]
    assert torch.equal(examples.tokens[:, 0], examples.starts)
