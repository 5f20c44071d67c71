"""Views made by hand, and a small library: what the tests of extraction work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from relax_egraph.egraph.node import (
    LOAD,
    STORE,
    Node,
    leaf_node,
    opaque_node,
    scalar_node,
)
from relax_egraph.egraph.view import ClassId, EClass, ENode, View
from relax_egraph.extract import Extraction, extract
from relax_egraph.extract.work import MOVEMENT
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Binding, Call, ExternFunc, Var, VarBinding
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.op import OPS, Op, complete_attrs
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

N = dims.symbol("n")


@dataclass
class Graph:
    """Tensor classes made by hand; `view` adds the kernel classes that fusion leads to."""

    nodes: dict[ClassId, list[ENode]] = field(default_factory=dict[ClassId, list[ENode]])
    infos: dict[ClassId, TensorStructInfo] = field(default_factory=dict[ClassId, TensorStructInfo])
    constants: set[ClassId] = field(default_factory=set[ClassId])
    scalars: dict[ClassId, float] = field(default_factory=dict[ClassId, float])
    calls: list[Binding] = field(default_factory=list[Binding])

    def leaf(self, *shape: dims.Dim, dtype: str = "float32", const: bool = False) -> ClassId:
        return self._new(leaf_node(len(self.nodes)), tensor(shape, dtype), const)

    def scalar(self, value: float, dtype: str = "float32") -> ClassId:
        c = self._new(scalar_node(value, dtype), tensor((), dtype), True)
        self.scalars[c] = value
        return c

    def opaque(self, *operands: ClassId, shape: Shape, name: str = "packed") -> ClassId:
        """What the packed function `name` makes."""
        info = tensor(shape, "float32")
        self.calls.append(VarBinding(Var("y", info), Call(ExternFunc(name), ())))
        return self._new(opaque_node(len(self.calls) - 1, operands), info, False)

    def op(
        self,
        name: str,
        *operands: ClassId | list[ClassId] | Shape,
        into: ClassId | None = None,
        **attrs: Attr,
    ) -> ClassId:
        """Apply an operator; `into` says which class the result is proven to be equal to.

        A list is of tensors that are one operand.
        """
        children = tuple(map(_child, operands))
        complete = complete_attrs(OPS[name], attrs)
        node = Node(name, children, tuple(complete.items()))
        if into is not None:
            self.nodes[into].append(node)
            return into
        infos = [self._info(c) for c in children]
        info = OPS[name].rule(*infos, **complete)
        assert isinstance(info, TensorStructInfo)
        return self._new(node, info, all(c in self.constants for c in node.operands))

    def _info(self, child: ClassId | tuple[ClassId, ...] | ShapeStructInfo) -> StructInfo:
        match child:
            case int():
                return self.infos[child]
            case tuple():
                return TupleStructInfo(tuple(self.infos[c] for c in child))
            case _:
                return child

    def view(self, *roots: ClassId, fused: bool = True) -> View:
        """The view; if `fused`, with ``store`` and ``load`` between a tensor and its kernel."""
        tensors = {
            c: EClass(
                "tensor", tuple(nodes), self.infos[c], c in self.constants, self.scalars.get(c)
            )
            for c, nodes in self.nodes.items()
        }
        if not fused:
            return View(tensors, roots, opaque=tuple(self.calls))
        inside = {c: c + len(tensors) for c in tensors}
        classes = dict(tensors)
        for c, eclass in tensors.items():
            terms = tuple(
                Node(
                    n.op, tuple(inside[k] if isinstance(k, int) else k for k in n.children), n.attrs
                )
                for n in eclass.nodes
                if n.op in OPS and eclass.struct_info.dims is not None
            )
            load = Node(LOAD, (c,))
            classes[inside[c]] = EClass("kernel", (*terms, load), eclass.struct_info)
            if terms:
                nodes = (*eclass.nodes, Node(STORE, (inside[c],)))
                classes[c] = EClass(
                    "tensor", nodes, eclass.struct_info, eclass.is_const, eclass.scalar
                )
        return View(classes, roots, opaque=tuple(self.calls))

    def _new(self, node: ENode, info: TensorStructInfo, const: bool) -> ClassId:
        c = len(self.nodes)
        self.nodes[c] = [node]
        self.infos[c] = info
        if const:
            self.constants.add(c)
        return c


def _child(
    operand: ClassId | list[ClassId] | Shape,
) -> ClassId | tuple[ClassId, ...] | ShapeStructInfo:
    match operand:
        case int():
            return operand
        case list():
            return tuple(operand)
        case _:
            return ShapeStructInfo(operand, len(operand))


@dataclass
class Library:
    """Runs one product or reduction in a kernel, of loaded tensors, and what is elementwise.

    A kernel has at most so many outputs, and all have one shape.
    An operator that is refused has loops of its own only if `own_loops` says so.
    """

    refused: frozenset[str] = frozenset()
    own_loops: Mapping[str, Schedule] = field(default_factory=dict[str, Schedule])
    most_outputs: int = 8
    asked: list[Kernel] = field(default_factory=list[Kernel])

    def schedule_of(self, kernel: Kernel) -> Schedule | None:
        self.asked.append(kernel)
        names = [step.op.name for step in kernel.steps]
        if self.refused.intersection(names):
            return None
        if set(names) <= {"reshape", "flatten", "expand_dims", "squeeze"}:
            return Schedule("view", 1.0, 1.0)
        shapes = {kernel.info(o).dims for o in kernel.outputs}
        if len(shapes) > 1 or len(kernel.outputs) > self.most_outputs:
            return None
        anchors = [s for s in kernel.steps if not s.op.elementwise and s.op.name not in MOVEMENT]
        if not anchors:
            return Schedule("elementwise", 0.5, 1.0)
        if len(anchors) > 1:
            return None
        if anchors[0].op.name == "matmul":
            loaded = all(v < len(kernel.inputs) for v in anchors[0].values)
            return Schedule("matmul", 0.9, 0.9) if loaded else None
        return Schedule("rows", 0.5, 1.0)

    def may_grow(self, operators: frozenset[str]) -> bool:
        return self.refused.isdisjoint(operators)

    def schedule_of_operator(
        self,
        op: Op,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
    ) -> Schedule | None:
        return self.own_loops.get(op.name)


def shown(found: Extraction) -> list[str]:
    """The program: ``7 = add(multiply(0, 1), 2)`` for a kernel, ``7 = !add(0, 1)`` as it stands.

    For a kernel that makes several classes ``7, 8 = exp(0), abs(exp(0))``.
    """
    lines: list[str] = []
    for choice in found.program:
        if isinstance(choice.how, Kernel):
            values = [str(c) for c in choice.inputs]
            for step in choice.how.steps:
                values.append(f"{step.op.name}({', '.join(values[v] for v in step.values)})")
            text = ", ".join(values[o] for o in choice.how.outputs)
        else:
            text = f"!{choice.how.op}({', '.join(map(str, choice.inputs))})"
        lines.append(f"{', '.join(map(str, choice.outputs))} = {text}")
    return lines


def kernels(found: Extraction) -> list[str]:
    """The kernels of the program, without what is taken as it stands."""
    return [line for line in shown(found) if "!" not in line]


def test_a_fused_view_equates_what_is_stored_and_loaded() -> None:
    g = Graph()
    x = g.leaf(4)
    y = g.op("exp", x)

    view = g.view(y)

    assert {c: [(n.op, n.children) for n in found.nodes] for c, found in view.classes.items()} == {
        0: [("leaf", ())],
        1: [("exp", (0,)), ("store", (3,))],
        2: [("load", (0,))],
        3: [("exp", (2,)), ("load", (1,))],
    }
    assert view.roots == (1,)


def test_the_library_runs_one_product_or_reduction() -> None:
    g = Graph()
    x = g.leaf(4, 4)
    twice = g.op("nn.softmax", g.op("nn.softmax", x))
    fed = g.op("matmul", g.op("exp", x), x)

    found = extract(g.view(twice, fed), Library())

    assert kernels(found) == [
        "1, 3 = nn.softmax(0), exp(0)",
        "2 = nn.softmax(1)",
        "4 = matmul(3, 0)",
    ]
