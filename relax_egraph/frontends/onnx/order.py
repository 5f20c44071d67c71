"""Orders nodes for conversion: quotients of sizes come just before their uses.

Exporters put the arithmetic on sizes of a whole model first.  An operator constrains its sizes for
later nodes: after a convolution with windows of 10, ``(n - 10) / 5``, which ONNX rounds towards 0,
is ``(n - 10) // 5``.
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
    """`nodes`, with nodes that compute with quotients of sizes moved to their first use.

    All other nodes keep their order; `constants` are names of known tensors.
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
    """Whether `node` computes with sizes, and an operand or the result is a quotient."""
    if node.domain or node.op_type not in _ARITHMETIC:
        return False
    if any(name not in early and name not in late for name in node.input):
        return False
    return node.op_type in _ROUNDED or any(name in late for name in node.input)


def _needed(names: Iterable[str], late: dict[str, onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Pop the `late` nodes with the outputs `names`, after the nodes that they depend on."""
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
    """The names that `node` reads: its operands, and free names of its subgraphs."""
    graphs = (g for a in node.attribute for g in (a.g, *a.graphs))
    return [*node.input, *(name for graph in graphs for name in free_names(graph))]


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that `graph` reads and does not define."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        yield from (name for name in names_in(node) if name and name not in own)
        own.update(node.output)
    yield from (o.name for o in graph.output if o.name not in own)
