"""What ``help`` prints of the facade: signatures that can be read."""

import inspect
import pydoc
from typing import Any

import relax_egraph as rx
from relax_egraph.base.signatures import readable

OPTIMIZE = """\
optimize(
    module: IRModule,
    rules: Sequence[str | Path | Rules] = (),
    *,
    without: Sequence[str] = (),
    fast_math: bool = False,
    tolerance: float | None = None,
    assume: Sequence[str] = (),
    hints: Mapping[str, int] | Sequence[tuple[float, Mapping[str, int]]] | None = None,
    variants: Mapping[str, Sequence[tuple[int, int | None]]] | None = None,
    profile: Profile | None = None,
    prices: Prices | None = None,
    budget: Budget | None = None,
    schedule: tuple[Phase, ...] | None = None,
    isolate: bool | None = None,
    time_limit: float | None = None,
) -> IRModule
    Return the best program that the rules prove equal to `module`, by the cost model.
"""


def test_the_options_of_optimize_stand_one_a_line() -> None:
    text = pydoc.plain(pydoc.render_doc(rx.optimize))

    assert text.partition("\n\n")[2].startswith(OPTIMIZE)


def test_no_line_of_a_signature_is_long() -> None:
    functions = {name: getattr(rx, name) for name in dir(rx) if name[0].islower()}

    for name, function in functions.items():
        if inspect.isfunction(function):
            signature = str(inspect.signature(function))
            assert max(map(len, signature.split("\n"))) <= 100, name


def every_kind(a: int, /, b: "str" = "x", *c: float, d: list[int], **e: Any) -> None: ...
def by_place(a: pydoc.Doc, /) -> None: ...
def by_name(*, only: Any) -> None: ...


def test_short_signatures_stand_on_one_line() -> None:
    functions = (every_kind, by_place, by_name)

    assert [str(inspect.signature(readable(f))) for f in functions] == [
        "(a: int, /, b: str = 'x', *c: float, d: list[int], **e: Any) -> None",
        "(a: Doc, /) -> None",
        "(*, only: Any) -> None",
    ]


def test_what_reads_signatures_reads_them_as_before() -> None:
    signature = inspect.signature(rx.optimize)

    bound = signature.bind(1, without=["fma"])

    assert bound.arguments == {"module": 1, "without": ["fma"]}
    assert signature.parameters["fast_math"].annotation is bool
    assert list(signature.replace(return_annotation=int).parameters) == list(signature.parameters)
