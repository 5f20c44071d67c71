"""Seconds as people write them."""


def time_text(seconds: float | None) -> str:
    """Seconds as people write them: ``12.3 µs``; a dash for what is not known."""
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(seconds) * scale >= 1:
            return (
                f"{seconds * scale:.3g} {unit}"
                if seconds * scale < 999.5
                else (f"{seconds * scale:.0f} {unit}")
            )
    return "0 µs" if seconds == 0 else f"{seconds * 1e6:.2g} µs"


def step_text(seconds: float) -> str:
    """Seconds that are told in steps of a millisecond."""
    return time_text(seconds) if seconds else "< 1 ms"
