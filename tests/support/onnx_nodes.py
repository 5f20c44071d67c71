"""Models of one node: results of machine code and of ONNX's reference evaluator."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import relax_egraph as rx
from relax_egraph.errors import ModelError
from tests.support.onnx_models import Array, value

OptionalArray = Array | None


def one_node(
    op: str,
    operands: Sequence[OptionalArray],
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 26,
    domain: str = "",
    shapes: Mapping[int, Sequence[int | str]] | None = None,
    **attrs: Any,
) -> ModelProto:
    """A model whose inputs are the operands, with a symbol for each extent; ``None`` is absent.

    `shapes` overrides the extents of some operands.  Outputs without a name are unused.
    """
    names = ["" if o is None else f"x{k}" for k, o in enumerate(operands)]
    inputs = [
        value(f"x{k}", (shapes or {}).get(k, [f"x{k}_{a}" for a in range(o.ndim)]), o.dtype.name)
        for k, o in enumerate(operands)
        if o is not None
    ]
    node = helper.make_node(op, names, list(outputs), domain=domain, **attrs)
    output_infos = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    imports += [helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid(TRAINING, 1)]
    graph = helper.make_graph([node], "graph", inputs, output_infos)
    return helper.make_model(graph, opset_imports=imports)


TRAINING = "ai.onnx.preview.training"


def is_optimized(op: str, operands: Sequence[OptionalArray], how: Mapping[str, Any]) -> bool:
    """Whether a model is optimized before it is built: one in eight, and all in long runs.

    The tests are about the import; for one node the rule book costs more than everything else.
    """
    shapes = [o if o is None else o.shape for o in operands]
    drawn = crc32(repr((op, shapes, sorted(how.items()))).encode())
    return drawn % 8 == 0 or os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"


def run(op: str, *operands: OptionalArray, **how: Any) -> Any:
    """The result of machine code: an array, or a list of several."""
    module = rx.from_onnx(one_node(op, operands, **how))
    if is_optimized(op, operands, how):
        module = rx.optimize(module)
    main = rx.VirtualMachine(rx.build(module))
    results = main["main"](*(o for o in operands if o is not None))
    return results if isinstance(results, np.ndarray) else list(results)


def reference(op: str, *operands: OptionalArray, **how: Any) -> Any:
    """The result of ONNX's reference evaluator, likewise."""
    feeds = {f"x{k}": o for k, o in enumerate(operands) if o is not None}
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(one_node(op, operands, **how)).run(None, feeds)
    assert isinstance(results, list)
    return results[0] if len(results) == 1 else results


def check(
    op: str, *operands: OptionalArray, rtol: float = 1e-5, atol: float = 1e-5, **how: Any
) -> None:
    """Check that both results are equal, including dtypes."""
    ours, theirs = run(op, *operands, **how), reference(op, *operands, **how)
    if not isinstance(theirs, list):
        ours, theirs = [ours], [theirs]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol, atol, strict=True)


def floats(*shape: int, seed: int = 0) -> Array:
    """Random numbers around 0."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def integers(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Random numbers of the whole range of `dtype`."""
    limits = np.iinfo(dtype)
    source = np.random.default_rng([seed, *shape])
    return source.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def refusal(op: str, *operands: OptionalArray, **how: Any) -> str:
    """The reason why the model of the node is not imported."""
    try:
        rx.from_onnx(one_node(op, operands, **how))
    except ModelError as refused:
        return str(refused).splitlines()[1].partition("): ")[2]
    raise AssertionError(f"{op} is imported")
