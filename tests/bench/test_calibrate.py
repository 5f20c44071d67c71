"""Measuring the machine: what comes of it can be saved, read, and used."""

import json
import math
from pathlib import Path

import pytest

from relax_egraph.calibrate import calibrated, profile_file
from relax_egraph.errors import ExtractionError
from relax_egraph.extract import REFERENCE_PROFILE
from tests.support.command import invoke


def test_the_command_saves_what_calibrated_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path))

    result = invoke("calibrate", "--seconds", 0, "--json")

    assert result.exit_code == 0, result.output
    profile = calibrated()
    assert json.loads(result.output) == {
        "file": str(tmp_path / "profile.json"),
        **profile.as_dict(),
    }
    assert profile.peak.keys() == REFERENCE_PROFILE.peak.keys()
    assert 1e-8 < profile.launch < 1e-3
    assert 1e9 < profile.peak["float64"] < 1e13
    assert profile.levels[-1].size == math.inf
    assert all(1e8 < level.bandwidth < 1e13 for level in profile.levels)


def test_without_a_profile_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", str(tmp_path))

    with pytest.raises(
        ExtractionError, match="this machine has no profile: run relax-egraph calibrate"
    ):
        calibrated()


def test_with_no_cache_a_file_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")

    result = invoke("calibrate")

    assert profile_file() is None
    assert result.exit_code == 2
    assert "RELAX_EGRAPH_CACHE is off: needs --output FILE" in result.output
