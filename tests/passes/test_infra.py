"""Passes, sequences, contexts and instruments."""

import io
from dataclasses import replace

import pytest

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import Function, SeqExpr, Var
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.struct_info import tensor
from relax_egraph.passes import (
    AssertWellFormed,
    Pass,
    PassContext,
    PassTiming,
    PrintAfter,
    PrintBefore,
    Sequential,
    function_pass,
    module_pass,
)
from relax_egraph.passes.infra import Transform

X = Var("x", tensor((2,), "float32"))
IDENTITY = Function((X,), SeqExpr((), X), X.struct_info)


def noting(name: str, opt_level: int = 0, required: tuple[Pass, ...] = ()) -> Pass:
    """A pass that adds a function of its name, so that the module says which passes ran."""

    @module_pass(name=name, opt_level=opt_level, required=required)
    def note(module: IRModule) -> IRModule:
        functions: dict[str, BaseFunc] = {
            **module.functions,
            f"{len(module.functions)} {name}": IDENTITY,
        }
        return IRModule(functions)

    return note


def ran(module: IRModule) -> list[str]:
    return [name.split()[1] for name in module.functions]


def scripted(module: IRModule) -> str:
    return f"{ran(module)}"


A, B, C = noting("a"), noting("b", opt_level=1), noting("c", opt_level=3)
EMPTY = IRModule()


def test_a_pass_says_its_name_and_level() -> None:
    assert (B.name, B.opt_level, B.required) == ("b", 1, ())
    assert ran(B(EMPTY)) == ["b"]


def test_a_sequence_runs_in_order_what_the_level_allows() -> None:
    passes = Sequential([C, B, A])

    assert ran(passes(EMPTY)) == ["b", "a"]
    with PassContext(opt_level=0):
        assert ran(passes(EMPTY)) == ["a"]
    with PassContext(opt_level=3):
        assert ran(passes(EMPTY)) == ["c", "b", "a"]


def test_passes_are_required_and_disabled_by_name() -> None:
    passes = Sequential([A, B, C])

    with PassContext(required_pass=["c"], disabled_pass=["a"]):
        assert ran(passes(EMPTY)) == ["b", "c"]
    with PassContext(required_pass=["c"], disabled_pass=["c"]):
        assert ran(passes(EMPTY)) == ["a", "b"]


def test_a_pass_that_is_called_itself_runs_under_any_level() -> None:
    with PassContext(opt_level=0, disabled_pass=["c"]):
        assert ran(C(EMPTY)) == ["c"]


def test_what_a_pass_requires_runs_before_it() -> None:
    needy = noting("needy", required=(C, A))

    assert ran(needy(EMPTY)) == ["c", "a", "needy"]


def test_sequences_nest_and_are_switched_as_one() -> None:
    inner = Sequential([A, B], name="inner", opt_level=2)
    outer = Sequential([inner, A])

    assert ran(outer(EMPTY)) == ["a", "b", "a"]
    with PassContext(opt_level=1):
        assert ran(outer(EMPTY)) == ["a"]
    with PassContext(disabled_pass=["inner"]):
        assert ran(outer(EMPTY)) == ["a"]


def test_contexts_nest_and_are_left_when_a_pass_raises() -> None:
    outer, inner = PassContext(opt_level=1), PassContext(opt_level=3)

    seen: list[PassContext] = []

    @module_pass(name="raising")
    def raising(module: IRModule) -> IRModule:
        seen.append(PassContext.current())
        raise ZeroDivisionError

    with outer:
        with pytest.raises(ZeroDivisionError), inner:
            raising(EMPTY)
        seen.append(PassContext.current())

    assert seen == [inner, outer]
    assert PassContext.current().opt_level == 2


def test_a_function_pass_rewrites_each_function() -> None:
    @function_pass(name="public", opt_level=1)
    def public(function: Function, module: IRModule) -> Function:
        return replace(function, attrs={"of": len(module.functions)})

    result = public(IRModule({"f": IDENTITY, "g": IDENTITY}))

    assert [dict(f.attrs) for f in result.functions.values()] == [{"of": 2}, {"of": 2}]
    assert public.opt_level == 1


def test_a_function_pass_that_changes_nothing_returns_the_same_module() -> None:
    @function_pass(name="nothing")
    def nothing(function: Function, module: IRModule) -> Function:
        return function

    module = IRModule({"f": IDENTITY})

    assert nothing(module) is module


# --- instruments ------------------------------------------------------------------------


def test_instruments_wrap_each_pass_the_first_outermost() -> None:
    log: list[str] = []

    def logging(label: str) -> object:
        def instrument(running: Pass, module: IRModule, run: Transform) -> IRModule:
            log.append(f"{label}({running.name}")
            result = run(module)
            log.append(f"{label})")
            return result

        return instrument

    with PassContext(instruments=[logging("x"), logging("y")]):  # pyright: ignore[reportArgumentType]  # they are instruments
        Sequential([A, B])(EMPTY)

    assert " ".join(log) == "x(sequential y(sequential x(a y(a y) x) x(b y(b y) x) y) x)"


def test_timing_is_a_tree_of_runs() -> None:
    timing = PassTiming()
    with PassContext(instruments=[timing]):
        Sequential([A, Sequential([B], name="inner")], name="all")(EMPTY)
        A(EMPTY)

    everything, alone = timing.runs

    assert [everything.name, alone.name] == ["all", "a"]
    first, inner = everything.children
    assert [first.name, inner.name, inner.children[0].name] == ["a", "inner", "b"]
    assert everything.seconds >= first.seconds + inner.seconds > 0
    assert [line.partition("ms  ")[2] for line in timing.render().splitlines()] == [
        "all",
        "  a",
        "  inner",
        "    b",
        "a",
    ]


def test_a_pass_that_raises_is_timed_and_leaves_the_tree_whole() -> None:
    @module_pass(name="broken")
    def broken(module: IRModule) -> IRModule:
        raise ZeroDivisionError

    timing = PassTiming()
    with PassContext(instruments=[timing]):
        with pytest.raises(ZeroDivisionError):
            Sequential([broken])(EMPTY)
        A(EMPTY)

    assert [(t.name, [c.name for c in t.children]) for t in timing.runs] == [
        ("sequential", ["broken"]),
        ("a", []),
    ]


def test_modules_are_printed_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IRModule, "script", scripted)
    out = io.StringIO()
    instruments = [PrintBefore(["b"], file=out), PrintAfter(file=out)]

    with PassContext(instruments=instruments):
        Sequential([A, B], name="all")(EMPTY)

    assert out.getvalue() == (
        "# --- after a\n['a']\n"
        "# --- before b\n['a']\n"
        "# --- after b\n['a', 'b']\n"
        "# --- after all\n['a', 'b']\n"
    )


def test_modules_are_printed_to_the_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(IRModule, "script", scripted)

    with PassContext(instruments=[PrintBefore()]):
        A(EMPTY)

    assert capsys.readouterr().out == "# --- before a\n[]\n"


def test_the_pass_that_breaks_a_law_is_named() -> None:
    @module_pass(name="breaking")
    def breaking(module: IRModule) -> IRModule:
        y = Var("y", X.struct_info)
        return IRModule({"main": Function((X,), SeqExpr((), y), X.struct_info)})

    with PassContext(instruments=[AssertWellFormed()]), pytest.raises(IllFormed) as refusal:
        Sequential([A, breaking])(EMPTY)

    assert str(refusal.value) == (
        "after pass breaking:\nmain: result uses y, which nothing defines"
    )
