"""What may be written, and how it is printed.

``tests/script/readings.txt`` is a list of cases: a title, a text as users or TVM write it, and the
whole text that is printed of it; so are ``older.txt``, of the first scripts, and ``newest.txt``, of
the latest version of TVM.
"""

from pathlib import Path

import pytest

from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.script import parse, print_module

TEXTS = Path(__file__).parent
CASES = [
    case
    for name in ("readings.txt", "older.txt", "newest.txt")
    for case in TEXTS.joinpath(name).read_text("utf-8").split("# -----\n")
]


@pytest.fixture(params=CASES, ids=lambda c: c.splitlines()[0][2:])
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    written, _, printed = request.param.partition("# =====\n")
    return written, printed


def test_a_text_is_read_and_printed(case: tuple[str, str]) -> None:
    written, printed = case

    module = parse(written)

    assert_well_formed(module)
    assert print_module(module, show_meta=True) == printed


def test_printing_what_was_printed_changes_nothing(case: tuple[str, str]) -> None:
    _, printed = case

    module = parse(printed)

    assert print_module(module, show_meta=True) == printed


def test_what_was_printed_means_what_was_read(case: tuple[str, str]) -> None:
    written, printed = case

    assert_structural_equal(parse(printed), parse(written))
