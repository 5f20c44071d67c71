"""E-graphs that were prepared for one program serve the next, which sees nothing of the first."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Thread
from typing import TypeVar

import pytest

import relax_egraph as rx
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.encoding.prepared import prepared
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import RULES, Form, Tree, is_literal, written
from relax_egraph.egraph.rulebook.generate import generated
from relax_egraph.egraph.rulebook.scope import vocabulary
from relax_egraph.ir.module import IRModule

BOOK = RuleBook.default()
DECLARES = ("constructor", "function", "relation")
T = TypeVar("T")


def alone(act: Callable[[], T]) -> T:
    """What `act` gives in a thread of its own, which has no e-graph yet."""
    results: list[T] = []
    thread = Thread(target=lambda: results.append(act()))
    thread.start()
    thread.join()
    (result,) = results
    return result


def variables(tree: Tree) -> Iterator[str]:
    """What stands in `tree` as an argument, and is no literal."""
    if isinstance(tree, Form):
        for item in tree.items[1 if tree.head else 0 :]:
            yield from variables(item)
    elif not is_literal(tree.text):
        yield tree.text


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAX_EGRAPH_CACHE", "off")


MODULE = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        lv0 = R.exp({})
        gv0 = R.{}(lv0)
        R.output(gv0)
    return gv0
"""


def test_what_is_optimized_after_others_is_as_alone() -> None:
    modules = [
        rx.parse(MODULE.format(value, function))
        for value, function in (("x", "log"), ("R.log(x)", "sqrt"), ("R.abs(x)", "nn.softmax"))
    ]

    def scripts(some: Sequence[IRModule]) -> list[str]:
        return [rx.optimize(module).script() for module in some]

    assert alone(lambda: scripts(modules)) == [alone(partial(scripts, [m]))[0] for m in modules]


def is_one_egraph(first: RuleBook, second: RuleBook) -> bool:
    """Whether `second` is prepared on the e-graph on which `first` was."""
    with prepared(first.program) as egraph:
        pass
    with prepared(second.program) as other:
        return egraph is other


def test_a_program_runs_where_one_like_it_was_declared() -> None:
    first, second = (BOOK.for_operators(names) for names in (["exp"], ["exp", "log"]))

    assert alone(lambda: is_one_egraph(first, second))


def test_a_small_program_does_not_run_where_a_large_one_was_declared() -> None:
    small, large = (BOOK.for_operators(names) for names in (["exp"], ["exp", "nn.conv2d"]))

    assert not alone(lambda: is_one_egraph(large, small))


VALUE = """
(shape-claim (Leaf 0) (vec-of (DimSym "2") (DimSym "3")))
(dtype-claim (Leaf 0) "float32")
(R.exp (R.nn.log_softmax (Leaf 0) 1))"""


@pytest.mark.parametrize("rule", ["rank-from-shape", "softmax-from-log-softmax"])
def test_a_rule_that_is_left_out_does_nothing_where_it_was_declared(rule: str) -> None:
    books = [RuleBook.default(without=left_out) for left_out in ([], [rule])]
    first, second = (book.for_operators(["nn.log_softmax", "exp"]) for book in books)

    def matches(book: RuleBook) -> int:
        with prepared(book.program_of_families) as egraph:
            step = "(run facts) (run dim) (run softmax)"
            outputs = run_text(egraph, f"{VALUE} (run-schedule (repeat 3 (seq {step})))")
            return outputs[-1].report.num_matches_per_rule.get(rule, 0)

    with_it, without = alone(lambda: (matches(first), matches(second)))

    assert with_it > 0
    assert without == 0


def test_no_variable_of_the_book_has_the_name_of_a_declaration() -> None:
    book = RuleBook.default(fast_math=True, bounded=True)
    forms = [entry.form for entry in (*generated(), *book.reading.entries)]
    declared = {written(form.items[1]) for form in forms if form.head in DECLARES}
    declared |= {declaration.name for declaration in vocabulary()}

    used = {name for form in forms if form.head in RULES for name in variables(form)}

    assert not used & declared
