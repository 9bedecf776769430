"""Positions: WHICH ids a token gets (assign), HOW a model sees them (encode), and named pairs of the two (scheme)."""

from lengen.positions.assign import ASSIGNERS, Assigner
from lengen.positions.scheme import ENCODERS, SCHEMES, EncoderSettings, Scheme, scheme_named

__all__ = ["ASSIGNERS", "ENCODERS", "SCHEMES", "Assigner", "EncoderSettings", "Scheme", "scheme_named"]
