"""The three sizes in which every experiment exists, synthetic or of language."""

from typing import Literal, cast, get_args

from lengen.checks import unknown_name

Scale = Literal["smoke", "cpu", "paper"]


def known_scale(name: str) -> Scale:
    if name not in get_args(Scale):
        raise unknown_name("scale", name, get_args(Scale))
    return cast(Scale, name)
