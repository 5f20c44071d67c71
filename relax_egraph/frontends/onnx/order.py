"""The order in which nodes are converted: quotients of sizes when a node needs them.

Exporters write the arithmetic on sizes of a whole model first.  What an operator needs of its sizes
is known to the nodes behind it, so that ``(n - 10) / 5`` behind a convolution with windows of 10 is
``(n - 10) // 5``, whose quotient ONNX rounds towards 0.
"""

from collections.abc import Iterable, Iterator

import onnx

_SIZES = frozenset({"Shape", "Size", "Constant"})
_ROUNDED = frozenset({"Div", "Mod"})
_ARITHMETIC = _ROUNDED | {
    *("Add", "Sub", "Mul", "Neg", "Max", "Min", "Cast", "Identity"),
    *("Gather", "Slice", "Concat", "Squeeze", "Unsqueeze", "Reshape"),
}


def ordered(nodes: Iterable[onnx.NodeProto], constants: Iterable[str]) -> list[onnx.NodeProto]:
    """`nodes`, of which those that compute with quotients of sizes come when they are needed.

    Every other node keeps its place among the others; `constants` are names of known tensors.
    """
    early, late = {"", *constants}, dict[str, onnx.NodeProto]()
    result = list[onnx.NodeProto]()
    for node in nodes:
        if _is_late(node, early, late):
            late.update((name, node) for name in node.output)
            continue
        if node.op_type in _SIZES or (node.op_type in _ARITHMETIC and early.issuperset(node.input)):
            early.update(node.output)
        result += _needed(names_in(node), late)
        result.append(node)
    return [*result, *_needed(list(late), late)]


def _is_late(node: onnx.NodeProto, early: set[str], late: dict[str, onnx.NodeProto]) -> bool:
    """Whether `node` computes with sizes, and one of them is a quotient or it makes one."""
    if node.domain or node.op_type not in _ARITHMETIC:
        return False
    if any(name not in early and name not in late for name in node.input):
        return False
    return node.op_type in _ROUNDED or any(name in late for name in node.input)


def _needed(names: Iterable[str], late: dict[str, onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Those of `late` nodes that give `names`, after what they need; they are late no more."""
    waiting = list(names)[::-1]
    while waiting:
        node = late.get(waiting[-1])
        more = [] if node is None else [name for name in node.input if name in late]
        waiting += more[::-1]
        if not more:
            waiting.pop()
            if node is not None:
                for name in node.output:
                    late.pop(name, None)
                yield node


def names_in(node: onnx.NodeProto) -> list[str]:
    """The names that `node` reads: its operands, and what its graphs read around them."""
    graphs = (g for a in node.attribute for g in (a.g, *a.graphs))
    return [*node.input, *(name for graph in graphs for name in free_names(graph))]


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that `graph` reads and does not define."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        yield from (name for name in names_in(node) if name and name not in own)
        own.update(node.output)
    yield from (o.name for o in graph.output if o.name not in own)
