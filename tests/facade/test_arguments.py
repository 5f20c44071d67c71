"""Wrong arguments of the facade: each is refused at the call, with one sentence.

``arguments/wrong_values.txt`` has wrong values of each keyword, and below each what is said of it;
``pytest --bless`` writes what is said.  A keyword takes the same in all functions that have it,
unless there is a section ``function.keyword``.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache, partial
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.base.parameters import FLAG, takes
from relax_egraph.build import assembly_text, llvm_text
from relax_egraph.calibrate import calibrate
from relax_egraph.egraph.engine import Budget, Phase
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.scope import vocabulary
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.extract import REFERENCE_PROFILE, Level
from relax_egraph.frontends.probed import Probed
from relax_egraph.optimize.session import OPTIONS
from relax_egraph.reasons.gains import bisect_cost
from relax_egraph.tir.block_builder import te_tensor
from tests.support.onnx_models import node, one

TABLE = Path(__file__).parent / "arguments" / "wrong_values.txt"

MODULE = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        gv0 = R.add(x, x)
        R.output(gv0)
    return gv0
""")
SWAP = '(rewrite (R.add x y) (R.add y x) :name "swap")'
X = np.zeros((2, 4), "float32")

IN_ROOMS = {
    *("Budget", "Phase", "RuleBook", "assembly_text", "bisect_cost", "calibrate", "llvm_text"),
    *("te_tensor", "vocabulary"),
}
"""Public functions and classes that are not in the facade."""


OF_ANOTHER = {"args", "named"}
"""Parameters of methods of machines that are arguments of the function which they call."""


@cache
def executable() -> Any:
    return rx.build(MODULE)


@cache
def machine() -> Any:
    return rx.VirtualMachine(executable())


@cache
def trace() -> Any:
    return rx.explain(MODULE).traces[0]


Arguments = dict[str, Callable[[], Any]]

module: Arguments = {"module": lambda: MODULE}
main: Arguments = {"name": lambda: "main"}
profile: Arguments = {
    f.name: partial(getattr, REFERENCE_PROFILE, f.name) for f in fields(REFERENCE_PROFILE)
}

CALLS: dict[str, tuple[Callable[..., object], Arguments]] = {
    "BlockBuilder": (rx.BlockBuilder, {}),
    "Budget": (Budget, {}),
    "ExecBuilder": (rx.ExecBuilder, {}),
    "IRModule": (rx.IRModule, {}),
    "Link": (rx.Link, {"bandwidth": lambda: 1e9, "latency": lambda: 1e-6}),
    "Phase": (Phase, {"name": lambda: "clean", "rulesets": lambda: ("canon",)}),
    "Prices": (rx.Prices, {}),
    "Profile": (rx.Profile, profile),
    "RuleBook": (RuleBook, {"families": lambda: ("fma",)}),
    "RuleBook.default": (RuleBook.default, {}),
    "VirtualMachine": (rx.VirtualMachine, {"executable": executable}),
    "VirtualMachine.__getitem__": (machine().__getitem__, {}),
    "VirtualMachine.allocate": (machine().allocate, {}),
    "VirtualMachine.get_outputs": (machine().get_outputs, {}),
    "VirtualMachine.invoke_closure": (machine().invoke_closure, {}),
    "VirtualMachine.invoke_stateful": (machine().invoke_stateful, {}),
    "VirtualMachine.profile": (machine().profile, main),
    "VirtualMachine.save_function": (machine().save_function, {**main, "saved": lambda: "f"}),
    "VirtualMachine.set_input": (machine().set_input, {}),
    "VirtualMachine.set_instrument": (machine().set_instrument, {}),
    "VirtualMachine.time_evaluator": (machine().time_evaluator, main),
    "assembly_text": (assembly_text, module),
    "bisect": (rx.bisect, {**module, "inputs": lambda: [X]}),
    "bisect_cost": (bisect_cost, module),
    "build": (rx.build, module),
    "calibrate": (calibrate, {}),
    "calibrated": (rx.calibrated, {}),
    "diff": (rx.diff, {"program": lambda: "model.pt2", "inputs": lambda: [X]}),
    "explain": (rx.explain, module),
    "from_jax": (rx.from_jax, {}),
    "from_onnx": (rx.from_onnx, {"model": lambda: one(node("Abs", "x", "y"))}),
    "from_stablehlo": (rx.from_stablehlo, {}),
    "from_torch": (rx.from_torch, {}),
    "gains": (rx.gains, module),
    "jax_call": (rx.jax_call, module),
    "llvm_text": (llvm_text, module),
    "load": (rx.load, {"path": lambda: TABLE}),
    "load_module": (rx.load_module, {}),
    "lower_module": (rx.lower_module, module),
    "operator": (rx.operator, {"name": lambda: "my.op", "numpy": lambda: abs}),
    "operators": (rx.operators, {}),
    "optimize": (rx.optimize, module),
    "parse": (rx.parse, {"text": MODULE.script}),
    "picture": (rx.picture, {"reasons": lambda: rx.explain(MODULE)}),
    "plan_memory": (rx.plan_memory, {}),
    "register_operators": (rx.register_operators, {}),
    "show_versions": (rx.show_versions, {}),
    "register_func": (rx.register_func, {"name": lambda: "f"}),
    "replay": (rx.replay, {"trace": trace}),
    "ray.map_batches": (
        rx.ray.map_batches,
        {"dataset": lambda: SimpleNamespace(map_batches=None), "path": lambda: TABLE},
    ),
    "rules.check": (rx.rules.check, {"given": lambda: SWAP}),
    "rules.prove": (rx.rules.prove, {"given": lambda: SWAP}),
    "rules.load": (rx.rules.load, {"given": lambda: SWAP}),
    "serve.Limits": (rx.serve.Limits, {}),
    "serve.application": (rx.serve.application, {"path": lambda: TABLE}),
    "serve.deployment": (rx.serve.deployment, {"path": lambda: TABLE}),
    "save_module": (rx.save_module, {**module, "path": lambda: "none.py"}),
    "sharded": (
        rx.sharded,
        {**module, "parts": lambda: 2, "link": lambda: rx.Link(bandwidth=1e9, latency=1e-6)},
    ),
    "te_tensor": (te_tensor, {"value": lambda: MODULE["main"]}),
    "vocabulary": (vocabulary, {}),
    "why_not": (rx.why_not, {**module, "rule": lambda: "add-zero"}),
}
"""Each function of the facade, and what it is called with besides the wrong value."""


def keywords(name: str) -> list[str]:
    """The parameters of a function of `CALLS`, and the options that it hands on to `optimize`."""
    every = inspect.signature(CALLS[name][0]).parameters.values()
    own = [p for p in every if p.name not in OF_ANOTHER]
    plain = [p.name for p in own if p.kind is not p.VAR_KEYWORD]
    return [*plain, *(o for o in OPTIONS if len(own) > len(plain) and o not in plain)]


def table() -> dict[str, dict[str, str]]:
    """By keyword, the wrong values, and what is said of each."""
    sections: dict[str, dict[str, str]] = {}
    for section in TABLE.read_text("utf-8").split("\n# "):
        keyword, *lines = section.removeprefix("# ").splitlines()
        rows = sections[keyword] = dict[str, str]()
        for line in filter(None, lines):
            if line.startswith(INDENT):
                rows[list(rows)[-1]] += line.removeprefix(INDENT) + "\n"
            else:
                rows[line] = ""
    return sections


INDENT = "    "
WRONG = table()


def section_of(name: str, keyword: str) -> str:
    own = f"{name}.{keyword}"
    return own if own in WRONG else keyword


def refusals(name: str, keyword: str) -> dict[str, str]:
    """What function `name` says of each wrong value of `keyword`."""
    function, arguments = CALLS[name]
    parameters = inspect.signature(function).parameters.values()
    by_place = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    known = {"module": MODULE, "executable": executable(), "peak": REFERENCE_PROFILE.peak}
    names = {**known, "nan": nan, "inf": inf, "Level": Level}
    said: dict[str, str] = {}
    for written in WRONG[section_of(name, keyword)]:
        values = {n: make() for n, make in arguments.items()} | {keyword: eval(written, names)}
        first = [values.pop(n) for n in [*values] if n in by_place]
        try:
            function(*first, **values)
        except (TypeError, ValueError, OSError, RelaxEgraphError) as error:
            said[written] = f"{type(error).__name__}: {error}\n"
        else:
            said[written] = "accepted\n"
    return said


PROBED = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        gv0 = R.add(x, x)
        R.output(gv0)
    return (gv0,)
""")


def _same(probed: Probed, program: Any) -> Probed:
    return probed


@pytest.fixture(scope="module", autouse=True)
def without_torch() -> Iterator[None]:
    """Programs of torch are stood in for by a module."""
    with pytest.MonkeyPatch.context() as patch:
        probed = Probed("torch", PROBED, (), lambda args: [args[0] + args[0]])
        patch.setattr(sys.modules["relax_egraph.diff"], "probed_torch", partial(_same, probed))
        yield


@pytest.fixture(scope="module", autouse=True)
def blessed(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--bless"):
        return
    first = {section_of(name, k): (name, k) for name in reversed(CALLS) for k in keywords(name)}
    for section in WRONG:
        WRONG[section] = refusals(*first[section])
    TABLE.write_text("\n".join(map(_written, WRONG)), "utf-8")


def _written(section: str) -> str:
    rows = WRONG[section].items()
    told = (f"{value}\n{INDENT}{INDENT.join(text.splitlines(True))}" for value, text in rows)
    return f"# {section}\n{''.join(told)}"


@pytest.mark.parametrize(
    ("name", "keyword"), [(name, keyword) for name in CALLS for keyword in keywords(name)]
)
def test_a_wrong_value_is_refused_with_a_sentence(name: str, keyword: str) -> None:
    expected = WRONG[section_of(name, keyword)]

    assert refusals(name, keyword) == expected
    assert "accepted\n" not in expected.values()
    assert len(expected) >= 10


def test_the_table_has_the_whole_facade() -> None:
    public = {n for n in dir(rx) if not n.startswith("_") and not inspect.ismodule(getattr(rx, n))}
    sections = {section_of(name, keyword) for name in CALLS for keyword in keywords(name)}

    assert {name for name in CALLS if "." not in name} - IN_ROOMS == public
    assert WRONG.keys() == sections


def test_the_table_has_the_methods_of_machines() -> None:
    methods = {n for n, _ in inspect.getmembers(rx.VirtualMachine, inspect.isfunction)}
    called = {name.partition(".")[2] for name in CALLS if name.startswith("VirtualMachine.")}

    assert called == {n for n in methods if not n.startswith("_")} | {"__getitem__"}


def test_none_is_taken_where_it_is_the_default_and_nowhere_else() -> None:
    options = inspect.signature(rx.optimize).parameters
    parameters = {
        (name, keyword): {**options, **inspect.signature(CALLS[name][0]).parameters}[keyword]
        for name in CALLS
        for keyword in keywords(name)
    }

    refused = {(n, k) for n, k in parameters if "None" in WRONG[section_of(n, k)]}

    taken_away = ("VirtualMachine.set_instrument", "instrument")
    assert refused == {at for at, p in parameters.items() if p.default is not None} - {taken_away}


@pytest.mark.parametrize("name", ["explain", "bisect", "bisect_cost", "gains", "why_not"])
def test_a_keyword_that_there_is_not_is_refused_with_the_one_that_is_near(name: str) -> None:
    function, arguments = CALLS[name]

    with pytest.raises(TypeError) as caught:
        function(**{n: make() for n, make in arguments.items()}, tolerence=0.02)

    assert str(caught.value) == f"{name} has no keyword 'tolerence'; did you mean tolerance?"


def test_a_parameter_without_a_kind_is_a_mistake_of_the_author() -> None:
    def function(portable: bool, other: bool) -> None: ...

    with pytest.raises(TypeError, match=r"^function: parameters and kinds differ$"):
        takes(portable=FLAG)(function)
    with pytest.raises(TypeError, match=r"^function: parameters and kinds differ$"):
        takes(portable=FLAG, other=FLAG, third=FLAG)(function)
