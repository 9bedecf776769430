"""Independent judges of sampled sequences: slow, plain Python, written from the paper's text and not from the tasks.

Each judge reads one example by the *names* of its tokens, checks the whole format, computes the answer again, and
computes the coupled ids again. It raises `Rejected` with a reason, or returns what it read, so that other tests can
count what was drawn. Where the paper specifies no ids (k-gram retrieval, sparse parity, copy, addition), the judge
states in its docstring which ones it demands.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple


class Rejected(AssertionError):
    """The example is not one that the paper's definition can produce."""


class Example(NamedTuple):
    """One row of a batch, by token name."""

    names: tuple[str, ...]
    ids: tuple[int, ...]
    prompt_len: int
    length: int  # what was asked for: the paper's x-axis


def demand(condition: bool, reason: str) -> None:
    if not condition:
        raise Rejected(reason)


def demand_ids(example: Example, expected: Sequence[int]) -> None:
    demand(len(example.ids) == len(example.names), f"{len(example.ids)} ids for {len(example.names)} tokens")
    demand(list(example.ids) == list(expected), f"ids {list(example.ids)} should be {list(expected)}")


def demand_target_start(example: Example, slot: int) -> None:
    demand(example.prompt_len == slot, f"the targets start at slot {slot}, not at {example.prompt_len}")


def slot_of_only(names: Sequence[str], separator: str) -> int:
    """Where a separator stands that has to stand exactly once."""
    slots = [slot for slot, name in enumerate(names) if name == separator]
    demand(len(slots) == 1, f"{separator} stands at slots {slots}, not exactly once")
    return slots[0]


def number_in(name: str, prefix: str, low: int, high: int) -> int:
    """The number of a token such as v17, which has to be written as plain digits and lie in low … high."""
    digits = name.removeprefix(prefix)
    if not (name.startswith(prefix) and digits.isdecimal() and digits == str(int(digits))):
        raise Rejected(f"{name!r} is not {prefix!r} and a number")
    if not low <= int(digits) <= high:
        raise Rejected(f"{name!r} is not in {prefix}{low} … {prefix}{high}")
    return int(digits)


def bit_of(name: str, zero: str, one: str) -> int:
    demand(name in (zero, one), f"{name!r} is neither {zero!r} nor {one!r}")
    return 1 if name == one else 0


# --------------------------------------------------------------------------------------------- sparse parity, eq. 20


class ReadSparseParity(NamedTuple):
    markers: tuple[int, ...]  # J_1 … J_ℓ
    bits: tuple[int, ...]  # b_1 … b_ℓ
    marked: tuple[int, ...]  # the (0-based) pairs with J_i ≤ N/2


def read_sparse_parity(example: Example, num_markers: int, k_train: int, k_test: int) -> ReadSparseParity:
    """⟨BOS⟩, J_1, t_{b_1}, …, J_ℓ, t_{b_ℓ}, ⟨SEP⟩, t_{b*}: b* is the parity of the bits after a marker ≤ N/2.

    Exactly k of the markers are ≤ N/2, with 1 ≤ k < ℓ; in training, k ≤ K_train; in testing, k is given. Nothing is
    coupled (footnote 10): every token but ⟨BOS⟩ keeps its own id.
    """
    names = example.names
    demand(example.length % 2 == 0, f"length {example.length} is not 2ℓ")
    num_pairs = example.length // 2
    demand(len(names) == 2 * num_pairs + 3, f"{len(names)} tokens for ℓ = {num_pairs}")
    demand(names[0] == "<BOS>", f"{names[0]!r} stands where <BOS> should")
    demand(names[-2] == "<SEP>", f"{names[-2]!r} stands where <SEP> should")

    markers, bits, marked, parity = [], [], [], 0
    for pair in range(num_pairs):
        marker = number_in(names[1 + 2 * pair], "j", 1, num_markers)
        bit = bit_of(names[2 + 2 * pair], "t0", "t1")
        markers.append(marker)
        bits.append(bit)
        if marker <= num_markers / 2:
            marked.append(pair)
            parity ^= bit
    demand(1 <= len(marked) < num_pairs, f"k = {len(marked)} of {num_pairs} bits are marked; 1 ≤ k < ℓ")
    if k_test:
        demand(len(marked) == k_test, f"k = {len(marked)} bits are marked, not k_test = {k_test}")
    else:
        demand(len(marked) <= k_train, f"k = {len(marked)} bits are marked, above K_train = {k_train}")

    demand_target_start(example, len(names) - 1)
    demand(bit_of(names[-1], "t0", "t1") == parity, f"the answer {names[-1]} is not the parity {parity}")
    demand_ids(example, range(len(names)))
    return ReadSparseParity(tuple(markers), tuple(bits), tuple(marked))


# -------------------------------------------------------------------------------------- parity with scratchpad, eq. 21


class ReadParity(NamedTuple):
    bits: tuple[int, ...]


def read_parity_scratchpad(example: Example, jump: int) -> ReadParity:
    """⟨BOS⟩, b_1, …, b_ℓ, ⟨SEP⟩, b'_1, …: the i-th scratchpad bit is the parity of the first jump·i bits.

    ℓ is the largest multiple of the jump with 2ℓ ≤ length. Each id of the input is repeated `jump` times (Sec. 5.2.1),
    and the scratchpad bit that these tokens decide has the same id; ⟨BOS⟩ and ⟨SEP⟩ have id 0.
    """
    names = example.names
    demand(example.length % 2 == 0, f"length {example.length} is not 2ℓ")
    demand(names[0] == "<BOS>", f"{names[0]!r} stands where <BOS> should")
    slot_of_only(names, "<BOS>")
    separator = slot_of_only(names, "<SEP>")
    bits = [bit_of(name, "0", "1") for name in names[1:separator]]
    scratchpad = [bit_of(name, "0", "1") for name in names[separator + 1 :]]

    demand(len(bits) % jump == 0, f"{len(bits)} bits are not a multiple of jump {jump}")
    demand(2 * len(bits) <= example.length, f"{len(bits)} bits are more than half of {example.length}")
    demand(2 * (len(bits) + jump) > example.length, f"{jump} more bits than {len(bits)} fit in {example.length}")
    demand(len(bits) > 0, "there are no bits")

    expected = []
    for step in range(1, len(bits) // jump + 1):
        expected.append(sum(bits[: step * jump]) % 2)
    demand(scratchpad == expected, f"scratchpad {scratchpad} should be {expected}")
    demand_target_start(example, separator + 1)

    input_ids = []
    for step in range(1, len(expected) + 1):
        for _ in range(jump):
            input_ids.append(step)
    demand_ids(example, [0, *input_ids, 0, *range(1, len(expected) + 1)])
    return ReadParity(tuple(bits))


# ----------------------------------------------------------------------------------------- variable assignment, eq. 22


class ReadVariableAssignment(NamedTuple):
    chains: tuple[
        tuple[int, ...], ...
    ]  # variables of each chain; the one asked for first, the others by first variable
    interleaving: tuple[int, ...]  # π: which of these chains each assignment of the input belongs to


def read_variable_assignment(
    example: Example, depth: int, num_variables: int, scratchpad: bool
) -> ReadVariableAssignment:
    """⟨BOS⟩, v_{1,1}, ⟨SEP1⟩, interleaved assignments, ⟨SEP2⟩, the chain of v_{1,1} written out (eq. 22).

    There are as many chains of `depth` assignments as fit in `length` tokens between ⟨SEP1⟩ and ⟨SEP2⟩; all variables
    are distinct, and each chain's own order is kept. The input has ids 0, 1, 2, …, then ⟨SEP2⟩ has 0, and each
    assignment of the scratchpad has the ids it has in the input. Without a scratchpad, the only target is the last
    variable, again with the id it has in the input.
    """
    names = example.names
    demand(names[0] == "<BOS>", f"{names[0]!r} stands where <BOS> should")
    slot_of_only(names, "<BOS>")
    demand(slot_of_only(names, "<SEP1>") == 2, "<SEP1> does not follow the starting variable")
    second = slot_of_only(names, "<SEP2>")
    start = number_in(names[1], "v", 1, num_variables)

    demand((second - 3) % 3 == 0, f"{second - 3} tokens between the separators are not assignments of three")
    lefts, rights = [], []
    for slot in range(3, second, 3):
        demand(names[slot + 1] == "<-", f"{names[slot + 1]!r} stands where <- should")
        lefts.append(number_in(names[slot], "v", 1, num_variables))
        rights.append(number_in(names[slot + 2], "v", 1, num_variables))

    num_chains = 0
    while 3 * depth * (num_chains + 1) <= example.length:
        num_chains += 1
    demand(
        len(lefts) == depth * num_chains,
        f"{len(lefts)} assignments, but {num_chains} chains of {depth} are the most that fit in {example.length}",
    )
    demand(len(set(lefts)) == len(lefts), "a variable is assigned twice")
    demand(len(set(rights)) == len(rights), "a variable is read twice")

    chains, place_chain = [], {}
    first_variables = sorted(variable for variable in lefts if variable not in rights)
    demand(start in first_variables, f"v{start} starts no chain")
    first_variables.remove(start)
    for first in [start, *first_variables]:
        chain, places = [first], []
        while chain[-1] in lefts:
            place = lefts.index(chain[-1])
            demand(not places or place > places[-1], f"the order of the chain of v{first} is not kept")
            place_chain[place] = len(chains)
            places.append(place)
            chain.append(rights[place])
        demand(len(places) == depth, f"the chain of v{first} has {len(places)} assignments, not {depth}")
        chains.append(tuple(chain))
    demand(len(chains) == num_chains, f"{len(chains)} chains, not {num_chains}")
    variables = [variable for chain in chains for variable in chain]
    demand(len(set(variables)) == num_chains * (depth + 1), "two chains share a variable")

    answer, answer_ids = [], []
    for left, right in pairwise(chains[0]):
        in_input = 3 + 3 * lefts.index(left)  # the slot of this assignment, and its id, since ⟨BOS⟩ has id 0
        answer += [f"v{left}", "<-", f"v{right}"]
        answer_ids += [in_input, in_input + 1, in_input + 2]
    if not scratchpad:
        answer, answer_ids = answer[-1:], answer_ids[-1:]
    demand(list(names[second + 1 :]) == answer, f"the target {names[second + 1 :]} should be {answer}")
    demand_target_start(example, second + 1)
    demand_ids(example, [*range(second), 0, *answer_ids])
    return ReadVariableAssignment(tuple(chains), tuple(place_chain[place] for place in range(len(lefts))))


# ------------------------------------------------------------------------------------ copy and reversal, eqs. 1 and 2


class ReadSymbols(NamedTuple):
    symbols: tuple[int, ...]


def read_rewriting(example: Example, num_symbols: int, rewrite: Callable[[Sequence[Any]], list[Any]]) -> ReadSymbols:
    """X_1, …, X_L, ⟨SEP⟩, and the X once more in the order of `rewrite`, each with the id of what it repeats."""
    separator = slot_of_only(example.names, "<SEP>")
    given, repeated = example.names[:separator], example.names[separator + 1 :]
    symbols = tuple(number_in(name, "", 0, num_symbols - 1) for name in given)
    demand(len(symbols) == example.length, f"{len(symbols)} symbols, not {example.length}")
    demand(list(repeated) == rewrite(given), f"the target {repeated} should be {rewrite(given)}")
    demand_target_start(example, separator + 1)
    ids = list(range(1, example.length + 1))
    demand_ids(example, [*ids, 0, *rewrite(ids)])
    return ReadSymbols(symbols)


def read_copy(example: Example, num_symbols: int) -> ReadSymbols:
    return read_rewriting(example, num_symbols, list)


def read_string_reversal(example: Example, num_symbols: int) -> ReadSymbols:
    return read_rewriting(example, num_symbols, lambda values: [values[-i] for i in range(1, len(values) + 1)])


# --------------------------------------------------------------------------------------------- k-gram retrieval, 3.1


class ReadKgram(NamedTuple):
    symbols: tuple[int, ...]  # X_1 … X_ℓ
    before: int  # the paper's ℓ'


def read_kgram_retrieval(example: Example, gram_size: int, num_symbols: int) -> ReadKgram:
    """X_1, …, X_ℓ, Y: the last k of the X stand at ℓ'+1 … ℓ'+k, too, with Y after them; ℓ' ∈ [ℓ − 2k − 1].

    The X keep their ids 1 … ℓ and Y has the id ℓ'+k+1 of the token that it repeats. By chance, the k-gram may stand in
    several places: the id says which one is meant, and only an admissible one will do.
    """
    names, length = example.names, example.length
    demand(len(names) == length + 1, f"{len(names)} tokens for ℓ = {length}")
    symbols = tuple(number_in(name, "", 0, num_symbols - 1) for name in names)
    query = names[length - gram_size : length]

    admissible = {}  # ℓ' → the token after the k-gram that stands there
    for before in range(1, length - 2 * gram_size - 1 + 1):
        if all(names[before + offset] == query[offset] for offset in range(gram_size)):
            admissible[before] = names[before + gram_size]
    demand(bool(admissible), f"the query {query} stands nowhere before")
    demand(names[length] in admissible.values(), f"the answer {names[length]} never follows {query}")

    demand_target_start(example, length)
    demand(len(example.ids) == length + 1, f"{len(example.ids)} ids for {length + 1} tokens")
    before = example.ids[length] - gram_size - 1
    demand(before in admissible, f"the answer's id {example.ids[length]} does not follow the query {query}")
    demand(names[length] == admissible[before], f"the answer's id points at {admissible[before]}, not {names[length]}")
    demand_ids(example, [*range(1, length + 1), before + gram_size + 1])
    return ReadKgram(symbols[:length], before)


# --------------------------------------------------------------------------------------------------------- addition


class ReadAddition(NamedTuple):
    left: int
    right: int


def read_addition(example: Example) -> ReadAddition:
    """⟨BOS⟩ left + right = sum: `length` digits each, zero-padded; the sum has one digit more and starts from its end.

    Digits of equal significance share an id, the ones digit having id 1; ⟨BOS⟩, + and = have id 0.
    """
    names, length = example.names, example.length
    demand(names[0] == "<BOS>", f"{names[0]!r} stands where <BOS> should")
    slot_of_only(names, "<BOS>")
    plus, equals = slot_of_only(names, "+"), slot_of_only(names, "=")
    demand(plus < equals, "= stands before +")
    left, right, total = names[1:plus], names[plus + 1 : equals], names[equals + 1 :]
    for digits, count in ((left, length), (right, length), (total, length + 1)):
        demand(len(digits) == count, f"{len(digits)} digits, not {count}")
        for digit in digits:
            number_in(digit, "", 0, 9)

    numbers = int("".join(left)), int("".join(right))
    expected = str(sum(numbers)).rjust(length + 1, "0")
    demand("".join(reversed(total)) == expected, f"the sum {total}, read backwards, should be {expected}")
    demand_target_start(example, equals + 1)
    significances = [length - place for place in range(length)]
    demand_ids(example, [0, *significances, 0, *significances, 0, *range(1, length + 2)])
    return ReadAddition(*numbers)


SOLVERS: dict[str, Callable[..., Any]] = {
    "sparse-parity": read_sparse_parity,
    "parity-scratchpad": read_parity_scratchpad,
    "variable-assignment": read_variable_assignment,
    "string-reversal": read_string_reversal,
    "copy": read_copy,
    "kgram-retrieval": read_kgram_retrieval,
    "addition": read_addition,
}
