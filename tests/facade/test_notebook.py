"""What a notebook shows of an object instead of its ``repr``."""

from typing import Any
from xml.etree import ElementTree

import numpy as np

import relax_egraph as rx
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import check_rules

PROGRAM = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        y = R.add(R.multiply(x, x), x)
        R.output(y)
    return y
"""


def shown(what: Any) -> ElementTree.Element:
    """What a notebook shows of `what`, which must be well-formed."""
    return ElementTree.fromstring(f"<div>{what._repr_html_().replace('<br>', '<br/>')}</div>")


def text(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def test_a_module_and_a_function_are_programs() -> None:
    module = rx.parse(PROGRAM)

    for part in (module, module["main"]):
        assert text(shown(part)) == part.script().rstrip()  # pyright: ignore[reportAttributeAccessIssue]
        assert len(list(shown(part).iter("span"))) > 5


def test_a_profile_is_a_table() -> None:
    vm = rx.VirtualMachine(rx.build(rx.parse(PROGRAM)))
    report = vm.profile("main", np.ones((3, 4), "float32"), repeat=1)

    headings = [text(cell) for cell in shown(report).iter("th")]
    assert headings[1:4] == ["value", "calls", "arrays"]


RULES = """
; x - x = 0
; float: exact
(rewrite (R.subtract x x) (R.multiply x (R.const 0.0 "float32")) :name "zero-of-finite")

; --x = x
; float: exact
(rewrite (R.negative (R.negative x)) x :name "negative-twice")
"""


def test_a_verdict_has_a_colour_and_its_counterexample_below() -> None:
    wrong, right = check_rules(RuleBook.default([RULES], families=()))

    assert "#2f8f46" in right._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "#d0453a" in wrong._repr_html_()  # pyright: ignore[reportPrivateUsage]
    label, *_ = shown(right).iter("span")
    assert text(label) == right.kind
    (below,) = shown(wrong).iter("pre")
    assert text(below).splitlines() == str(wrong).splitlines()[1:]
