"""What values of flags have in common, whichever command they belong to."""


def require_at_least(flag: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{flag} {value} is too few; use at least {least}")
