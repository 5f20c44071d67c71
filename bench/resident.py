"""The resident memory of this process, on Linux."""

from pathlib import Path


def resident() -> int:
    """The bytes of all resident pages; resets the peak."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_resident() -> int:
    """The peak of resident bytes since the last `resident`."""
    return _status("VmHWM")


def resident_of_files() -> int:
    """The bytes of resident pages of mapped files."""
    return _status("RssFile")


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
