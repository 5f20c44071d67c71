"""Text of durations."""


def time_text(seconds: float | None) -> str:
    """A duration with its unit, ``12.3 µs``; a dash if it is unknown."""
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if abs(seconds) * scale >= 1:
            digits = ".3g" if seconds * scale < 999.5 else ".0f"
            return f"{seconds * scale:{digits}} {unit}"
    return "0 µs" if seconds == 0 else f"{seconds * 1e6:.2g} µs"


def step_text(seconds: float) -> str:
    """A duration that was measured in whole milliseconds."""
    return time_text(seconds) if seconds else "< 1 ms"
