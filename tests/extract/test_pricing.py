"""Several sizes with their weights, prices of users, and machines that are saved."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import REFERENCE_PROFILE, Level, Prices, Profile, price
from relax_egraph.extract.pricing import Pricing
from relax_egraph.extract.work import Applied
from relax_egraph.ir import dims
from relax_egraph.ir.kernel import Input, Kernel, Schedule, Step
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor

N = dims.symbol("n")
FULL = Schedule("elementwise", 1.0, 1.0)
ROWS = tensor((N, 100), "float32")
ADD = Kernel((Input(ROWS), Input(ROWS)), (Step(OPS["add"], (0, 1), (), ROWS),), (2,))


def test_several_sizes_are_a_weighted_mean() -> None:
    small, large = (price(ADD, FULL, hints={"n": n}) for n in (1, 10_000))

    mixed = price(ADD, FULL, hints=[(3.0, {"n": 1}), (1.0, {"n": 10_000})])

    assert mixed == pytest.approx(0.75 * small + 0.25 * large)


def test_a_user_prices_the_computing_of_an_operator() -> None:
    seen: list[Applied] = []

    def slow(applied: Applied) -> float:
        seen.append(applied)
        return 5.0

    found = Pricing(REFERENCE_PROFILE, {"n": 7}, Prices(operators={"add": slow}))

    moving = REFERENCE_PROFILE.moving(3 * 4 * 700)
    expected = REFERENCE_PROFILE.launch + moving + 5.0
    assert found.kernel(ADD, FULL) == pytest.approx(expected)
    assert seen == [Applied({}, ((7, 100), (7, 100)), (7, 100))]


def test_a_user_prices_kernels_knowing_what_the_model_says() -> None:
    def double(kernel: Kernel, sizes: Mapping[str, int], seconds: float) -> float:
        return 2 * seconds if sizes == {"n": 7} and kernel is ADD else 0.0

    found = Pricing(REFERENCE_PROFILE, {"n": 7}, Prices(kernel=double))

    assert found.kernel(ADD, FULL) == 2 * price(ADD, FULL, hints={"n": 7})


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_a_price_that_is_none_is_refused(seconds: float) -> None:
    def said(kernel: Kernel, sizes: Mapping[str, int], modelled: float) -> float:
        return seconds

    found = Pricing(REFERENCE_PROFILE, {}, Prices(kernel=said))

    with pytest.raises(ExtractionError, match=r"^the kernel of R\.add is priced at .* seconds"):
        found.kernel(ADD, FULL)


positive = st.floats(1, 1e12, allow_nan=False)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    caches = sorted(draw(st.sets(positive, max_size=3)))
    return Profile(
        "drawn",
        draw(positive),
        {dtype: draw(positive) for dtype in REFERENCE_PROFILE.peak},
        tuple(Level(size, draw(positive)) for size in (*caches, math.inf)),
        draw(st.integers(1, 64)),
    )


@given(profiles())
def test_a_profile_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, profile: Profile
) -> None:
    file = tmp_path_factory.mktemp("profile") / "machine.json"

    profile.write(file)

    assert Profile.read(file) == profile


@given(profiles(), positive, positive)
def test_moving_more_takes_longer_at_no_less_than_the_best_bandwidth(
    profile: Profile, a: float, b: float
) -> None:
    small, large = sorted((a, b))

    assert profile.moving(small) <= profile.moving(large) * (1 + 1e-9)
    best = max(level.bandwidth for level in profile.levels)
    assert profile.moving(large) >= large / best * (1 - 1e-9)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1", "Expecting"),
        ("[]", "it is no object"),
        ("{}", "'levels'"),
        ('{"levels": [[null, 1]], "peak": {}, "name": "", "launch": 1, "cores": 1}', "no peak for"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "machine.json"
    file.write_text(text, "utf-8")

    with pytest.raises(
        ExtractionError, match=f"machine.json is not the profile of a machine: .*{problem}"
    ):
        Profile.read(file)


def test_levels_of_memory_end_without_an_end() -> None:
    with pytest.raises(ValueError, match="the last is without an end"):
        replace(REFERENCE_PROFILE, levels=(Level(10.0, 1.0),))
