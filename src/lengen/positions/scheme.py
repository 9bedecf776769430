"""A scheme is an assigner with an encoder: any pair by name ("predicted+fire"), and the pairs people know by a name."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from lengen.checks import check_choices, require, unknown_name
from lengen.positions.assign import ASSIGNERS, Assigner, Contiguous, Coupled, Pose, Predicted, Randomized, Shifted
from lengen.tasks.base import Task


@dataclass(frozen=True)
class EncoderSettings:
    """How a model sees position ids. The modules that do it are in `encode.py`; settings need no torch."""

    name: ClassVar[str]
    about: ClassVar[str]
    has_table: ClassVar[bool] = False  # one learned row an id: no id beyond the table can be seen
    has_weights: ClassVar[bool] = False  # learned: another encoder cannot take its place in a trained model


@dataclass(frozen=True)
class NoPosition(EncoderSettings):
    name: ClassVar[str] = "nope"
    about: ClassVar[str] = "no position encoding: order is known from the causal mask alone"


@dataclass(frozen=True)
class LearnedAbsolute(EncoderSettings):
    name: ClassVar[str] = "ape"
    about: ClassVar[str] = "a learned vector an id, added to the token's"
    has_table: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True


@dataclass(frozen=True)
class Rope(EncoderSettings):
    name: ClassVar[str] = "rope"
    about: ClassVar[str] = (
        "rotary: queries and keys turned by their ids; partial, with linear / NTK / YaRN interpolation"
    )

    rotary_fraction: float = 0.25  # the part of each head that turns; GPT-NeoX's default
    base: float = 10_000.0
    interpolation: Literal["none", "linear", "ntk", "yarn"] = "none"
    factor: float = 1.0  # how many times longer than in training the ids may get
    trained_max_id: int = 256  # YaRN: frequencies that turned often within it are kept, slow ones interpolated

    def __post_init__(self) -> None:
        check_choices(self)
        require(
            0 < self.rotary_fraction <= 1,
            f"rotary_fraction={self.rotary_fraction} is not in (0, 1]",
            "use 0.25 (GPT-NeoX) or 1 for full rotary",
        )
        require(self.base > 1, f"base={self.base} is too small", "use 10000 or another number above 1")
        require(self.factor >= 1, f"factor={self.factor} is below 1", "use the test length over the training length")
        require(
            self.trained_max_id >= 1,
            f"trained_max_id={self.trained_max_id} is too small",
            "use the largest id that training had",
        )


@dataclass(frozen=True)
class Alibi(EncoderSettings):
    name: ClassVar[str] = "alibi"
    about: ClassVar[str] = "a penalty on attention scores that grows with the distance of ids (Press et al., 2022)"


@dataclass(frozen=True)
class Fire(EncoderSettings):
    name: ClassVar[str] = "fire"
    about: ClassVar[str] = (
        "a learned function of the relative distance of ids, normalised by the query's (Li et al., 2024)"
    )
    has_weights: ClassVar[bool] = True

    hidden: int = 32

    def __post_init__(self) -> None:
        require(self.hidden >= 1, f"hidden={self.hidden} is too small", "use at least 1")


ENCODERS: dict[str, type[EncoderSettings]] = {
    encoder.name: encoder for encoder in (NoPosition, LearnedAbsolute, Rope, Alibi, Fire)
}


@dataclass(frozen=True)
class Scheme:
    assigner: Assigner
    encoder: EncoderSettings

    @property
    def name(self) -> str:
        return f"{self.assigner.name}+{self.encoder.name}"

    @property
    def num_ids(self) -> int:
        """Rows of an embedding table or a position head: ids 0 … max_position_id."""
        return self.assigner.max_position_id + 1

    def check_test_length(self, task: Task, length: int) -> None:
        """Raise if a test example needs ids that the model has no row for."""
        needed, largest = self.assigner.largest_id(task, length), self.assigner.max_position_id
        is_bounded = self.encoder.has_table or self.assigner.predicts_ids or self.assigner.is_bounded_at_test
        require(
            needed <= largest or not is_bounded,
            f"length={length} of {task.name} needs position ids up to {needed}, beyond the position table "
            f"(max_position_id={largest})",
            "use a shorter length or train with a larger --assigner.max_position_id",
        )


@dataclass(frozen=True)
class NamedScheme:
    scheme: Scheme
    about: str


SCHEMES: dict[str, NamedScheme] = {
    "ppc": NamedScheme(
        Scheme(Predicted(), LearnedAbsolute()), "Predictive Position Coupling: the paper's own (Sec. 5.2)"
    ),
    "coupled": NamedScheme(
        Scheme(Coupled(), LearnedAbsolute()), "position coupling, true ids fed in decoding (Cho et al., 2024)"
    ),
    "shifted-ape": NamedScheme(
        Scheme(Shifted(), LearnedAbsolute()), "the paper's baseline without coupling (Figs. 3b and 8a)"
    ),
    "pose-rope": NamedScheme(Scheme(Pose(), Rope()), "the paper's RoPE + PoSE (Figs. 1, 3c, 3d, 7 and 8b)"),
    "pose-original-rope": NamedScheme(Scheme(Pose(pose_variant="original"), Rope()), "PoSE as in Zhu et al. (2023)"),
    "abacus": NamedScheme(
        Scheme(Coupled(offset_per="batch"), LearnedAbsolute()), "one offset a batch, as McLeish et al. (2024)"
    ),
    "randomized-ape": NamedScheme(Scheme(Randomized(), LearnedAbsolute()), "randomized ids, as Ruoss et al. (2023)"),
    "randomized-rope": NamedScheme(Scheme(Randomized(), Rope()), "randomized ids with rotary"),
    "ape": NamedScheme(Scheme(Contiguous(), LearnedAbsolute()), "plain learned absolute positions"),
    "rope": NamedScheme(Scheme(Contiguous(), Rope()), "plain rotary positions"),
    "nope": NamedScheme(Scheme(Contiguous(), NoPosition()), "no positions, as Kazemnejad et al. (2023)"),
    "alibi": NamedScheme(Scheme(Contiguous(), Alibi()), "linear biases, as Press et al. (2022)"),
    "fire": NamedScheme(Scheme(Contiguous(), Fire()), "functional relative biases, as Li et al. (2024)"),
    "ppc-rope": NamedScheme(Scheme(Predicted(), Rope()), "PPC seen through rotary"),
    "ppc-fire": NamedScheme(Scheme(Predicted(), Fire()), "PPC seen through FIRE, which the paper leaves for later"),
}


def nickname(scheme: Scheme) -> str:
    """The name people know such a pair by, the exact settings before the pair alone; or else the pair itself."""
    of_pair = {name: entry.scheme for name, entry in SCHEMES.items() if entry.scheme.name == scheme.name}
    for name, known in of_pair.items():
        if replace(known.assigner, max_position_id=scheme.assigner.max_position_id) == scheme.assigner:
            return name
    return next(iter(of_pair), scheme.name)


def scheme_named(name: str) -> Scheme:
    """A named scheme, or any pair written assigner+encoder."""
    if name in SCHEMES:
        return SCHEMES[name].scheme
    assigner, plus, encoder = name.partition("+")
    if not plus:
        raise unknown_name("scheme", name, SCHEMES, "or write a pair such as predicted+fire; see `lengen schemes`")
    if assigner not in ASSIGNERS:
        raise unknown_name("assigner", assigner, ASSIGNERS)
    if encoder not in ENCODERS:
        raise unknown_name("encoder", encoder, ENCODERS)
    return Scheme(ASSIGNERS[assigner](), ENCODERS[encoder]())
