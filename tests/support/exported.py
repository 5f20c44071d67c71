"""Programs as exporters write them: short module texts, and checks of recognised operators."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.egraph.encoding.encode import encode
from relax_egraph.egraph.engine import RuleBook, saturate
from relax_egraph.ir import dims
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import DataflowBlock, DataflowVar, Function
from relax_egraph.ir.struct_info import TensorStructInfo

EXTENTS = {"n": 3, "b": 2, "s": 5, "t": 6, "h": 4}
"""The values of the symbols."""


def module_of(params: str, body: str, outputs: tuple[str, ...] = ("gv",)) -> rx.IRModule:
    """``main`` of one dataflow block; ``c(2)`` is a float32 constant, ``x(n, 4)`` a parameter.

    It returns the single one of `outputs`, or a tuple of several.
    """
    listed = re.sub(r"(\w+)\(([^)]*)\)(?::(\w+))?", _param, params)
    lines = "\n".join(f"        {line.strip()}" for line in body.strip().splitlines())
    text = (
        f"@R.function\ndef main({listed}):\n    with R.dataflow():\n{lines}\n"
        f"        R.output({', '.join(outputs)})\n    return {', '.join(outputs)}\n"
    )
    return rx.parse(re.sub(r"\bc\(([^)]*)\)", r'R.const(\1, "float32")', text))


def _param(match: re.Match[str]) -> str:
    name, extents, dtype = match.groups()
    shape = "".join(f"{e}, " if e.isdigit() else f'"{e}", ' for e in extents.split(", "))
    return f'{name}: R.Tensor(({shape}), "{dtype or "float32"}")'


def inputs_of(module: rx.IRModule) -> list[npt.NDArray[Any]]:
    rng = np.random.default_rng(0)
    function = module["main"]
    assert isinstance(function, Function)
    return [_random(rng, p.struct_info) for p in function.params]


def _random(rng: np.random.Generator, info: object) -> npt.NDArray[Any]:
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    shape = tuple(dims.evaluate(d, EXTENTS) for d in info.dims)
    if info.dtype == "bool":
        return rng.random(shape) < 0.7
    return rng.uniform(0.1, 1.9, shape).astype(info.dtype)


def check(operator: str, module: rx.IRModule, *, fast_math: bool = False) -> None:
    """Check that `operator` is in the result's e-class, and that the chosen program is right."""
    explained = rx.explain(module, fast_math=fast_math)
    (region,) = explained.regions
    (root,) = region.view.roots
    operators = {node.op for node in region.view.classes[root].nodes}
    assert operator in operators, f"{operator} is not among {sorted(operators)}"
    inputs = inputs_of(module)
    want, have = (np.asarray(evaluate(m, "main", *inputs)) for m in (module, explained.module))
    np.testing.assert_allclose(have, want, rtol=2e-4, atol=1e-5)


def operators_of(module: rx.IRModule, *, fast_math: bool = False) -> set[str]:
    """All operators in the e-graphs of `module`."""
    explained = rx.explain(module, fast_math=fast_math)
    classes = [c for region in explained.regions for c in region.view.classes.values()]
    return {node.op for c in classes for node in c.nodes}


def roots_of(module: rx.IRModule, *, fast_math: bool = False) -> tuple[int, ...]:
    """The classes of the outputs of ``main``, of one block; equal outputs have equal classes."""
    function = module["main"]
    assert isinstance(function, Function)
    (block,) = (b for b in function.body.blocks if isinstance(b, DataflowBlock))
    outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]
    source = encode(block.bindings, outputs).view
    return saturate(source, RuleBook.default(fast_math=fast_math)).view.roots
