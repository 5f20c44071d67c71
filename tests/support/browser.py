"""Headless Chromium, on machines that have it."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("chrome-headless-shell", "microsoft-edge", "msedge"),
)

OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@cache
def _browser() -> str | None:
    """The browser: the program in the environment variable ``CHROMIUM``, or one on the path."""
    names = filter(None, (os.environ.get("CHROMIUM"), *_NAMES))
    return next(filter(None, map(shutil.which, names)), None)


def browser() -> str:
    """The browser's program; skips the test if there is none."""
    program = _browser()
    if program is None:
        pytest.skip("no Chromium: none on the path, and CHROMIUM names none")
    return program


def dom_of(page: Path, fragment: str = "") -> str:
    """The document of `page` after its script has run, opened at `fragment`.

    Skips the test if there is no browser.
    """
    address = f"{page.as_uri()}#{fragment}" if fragment else page.as_uri()
    profile = f"--user-data-dir={page.parent / 'profile'}"
    done = subprocess.run(
        [browser(), *OPTIONS, profile, "--virtual-time-budget=2000", "--dump-dom", address],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
