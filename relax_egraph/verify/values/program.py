"""Instances as one program of ground terms, and what its steps compute."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.attributes import meant
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, PrimValue
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.problem import Node
from relax_egraph.verify.instances.query import Arg


@dataclass(frozen=True, slots=True)
class Step:
    """Value `number` of the program, which is `variable` of an instance.

    `children` are numbers of other steps, tuples of them, shapes, scalars of the host, or ``None``;
    `how` is an operator, or ``leaf``, ``const``, ``tuple_get``, ``same``.  A `constant` is a leaf;
    what is `narrow` loses nothing if it is stored so: the dtype and the axis along which elements
    share a scale.
    """

    number: int
    instance: int
    variable: str
    how: Op | str
    children: tuple[Any, ...] = ()
    attrs: tuple[tuple[str, Attr], ...] = ()
    info: TensorStructInfo | None = None
    scalar: float | None = None
    constant: bool = False
    narrow: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Program:
    """Instances side by side: no two share a leaf."""

    declarations: Mapping[str, Declaration]
    instances: list[Instance] = field(default_factory=list[Instance])
    steps: list[Step] = field(default_factory=list[Step])
    texts: list[list[str]] = field(default_factory=list[list[str]])
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, instance: Instance) -> None:
        """Add what `instance` says of the nodes that a rule matches, and of their operands."""
        numbers: dict[str, int] = {}
        self.instances.append(instance)
        self.texts.append([])
        self._names.clear()
        problem = instance.problem
        roots = [n.result for n in problem.nodes if not n.made]
        roots += [*problem.scalars, *problem.constants, *problem.positions]
        for variable in dict.fromkeys(roots):
            self._number(variable, instance, numbers)
        positions = {
            numbers[t]: instance.get(i)
            for t, i in problem.positions.items()
            if not isinstance(i, str) or i in instance.values
        }
        for step in self.steps:
            if step.instance == len(self.instances) - 1 and step.info is not None:
                at = positions.get(step.number, step.number)
                if problem.sorts.get(step.variable) == "Tensor":
                    self.texts[-1].append(f"(set (source-index t{step.number}) {at})")

    def _number(self, variable: str, instance: Instance, numbers: dict[str, int]) -> int:
        if variable in numbers:
            return numbers[variable]
        problem = instance.problem
        node = problem.made.get(variable)
        scalar = problem.scalars.get(variable)
        value = None if scalar is None else float(instance.get(scalar))
        if node is None:
            number = self._leaf(variable, instance, value)
        else:
            number = self._node(node, variable, instance, numbers, value)
        numbers[variable] = number
        return number

    def _leaf(self, variable: str, instance: Instance, value: float | None) -> int:
        info, number = instance.info(variable), len(self.steps)
        shape = info.dims or ()
        constant = self._constant(variable, instance)
        step = self._step(number, variable, "leaf", (), (), info, value)
        narrow = tuple(_narrow(variable, instance))
        self.steps.append(replace(step, constant=constant, narrow=narrow))
        name = f"t{number}"
        self.texts[-1].append(f"(let {name} (Leaf {number})) (union {name} (Value {number}))")
        for dtype, axis in narrow:
            text = literals.string(dtype)
            self.texts[-1].append(f"(within-tolerance {name} {text} {axis})")
        self._claim(name, info)
        static = [d for d in shape if isinstance(d, int)]
        if value is not None:
            self.texts[-1].append(f"(set (const-scalar {name}) {literals.number(value)})")
        if constant or (value is not None and len(static) == len(shape)):
            self.texts[-1].append(f"(is-const {name})")
        return number

    def _claim(self, name: str, info: TensorStructInfo) -> None:
        """Say what is known of a value, as of every value of a program."""
        shape = info.dims or ()
        self.texts[-1].append(f"(shape-claim {name} {self._shape(shape)})")
        self.texts[-1].append(f"(dtype-claim {name} {literals.string(info.dtype or '')})")

    def _dim(self, dim: dims.Dim) -> str:
        return self._named(literals.dim(dim))

    def _shape(self, shape: Shape) -> str:
        return self._named(literals.vector([self._dim(d) for d in shape]))

    def _named(self, text: str) -> str:
        """A name for `text`: egglog checks what an instance says again and again only once."""
        if text not in self._names:
            self._names[text] = f"named-{len(self._names)}"
            self.texts[-1].append(f"(let {self._names[text]} {text})")
        return self._names[text]

    def _constant(self, variable: str, instance: Instance) -> bool:
        """Whether a constant is made of the leaf `variable`."""
        todo = list(instance.problem.constants)
        for constant in todo:
            if constant == variable:
                return True
            node = instance.problem.made.get(constant)
            todo += [t for a in (node.args if node else ()) for t in instance.problem.tensors(a)]
        return False

    def _node(
        self,
        node: Node,
        variable: str,
        instance: Instance,
        numbers: dict[str, int],
        value: float | None,
    ) -> int:
        children = tuple(self._children(node, instance, numbers))
        count = len(node.op.operands) if node.op else len(node.args)
        attrs: tuple[tuple[str, Attr], ...] = ()
        how: Op | str = node.op or "same"
        if node.op is not None:
            given = zip(node.op.attrs, node.args[count:], strict=True)
            attrs = tuple((a.name, meant(a, instance.get(v))) for a, v in given)
        number = len(self.steps)
        sort = instance.problem.sorts.get(variable, "Tensor")
        info = None if sort == "Tuple" or node.head == "R.none" else instance.info(variable)
        if node.head == "R.tuple_get":
            how, attrs, children = (
                "tuple_get",
                (("index", instance.get(node.args[1])),),
                children[:1],
            )
        elif node.head == "R.const":
            how, value, children = "const", float(instance.get(node.args[0])), ()
        elif node.head == "R.none":
            how = "none"
        self.steps.append(self._step(number, variable, how, children, attrs, info, value))
        sorts = self.declarations[node.head].sorts
        args = [
            self._written(a, s, instance, numbers) for a, s in zip(node.args, sorts, strict=True)
        ]
        term = f"({' '.join([node.head, *args])})"
        if sort == "Kernel":
            term = f"(K.store {self._written(variable, sort, instance, numbers)})"
        name = f"({'TupleValue' if sort == 'Tuple' else 'Value'} {number})"
        self.texts[-1].append(f"(let t{number} {term}) (union t{number} {name})")
        if info is not None:
            self._claim(f"t{number}", info)
        if value is not None and how != "const":
            self.texts[-1].append(f"(set (const-scalar t{number}) {literals.number(value)})")
        return number

    def _step(
        self,
        number: int,
        variable: str,
        how: Op | str,
        children: tuple[Any, ...],
        attrs: tuple[tuple[str, Attr], ...],
        info: TensorStructInfo | None,
        scalar: float | None,
    ) -> Step:
        at = len(self.instances) - 1
        return Step(number, at, variable, how, children, attrs, info, scalar)

    def _children(self, node: Node, instance: Instance, numbers: dict[str, int]) -> Iterator[Any]:
        problem = instance.problem
        operands = node.args[: len(node.op.operands)] if node.op else node.args
        for arg in operands:
            if isinstance(arg, str) and arg in problem.elements:
                yield tuple(self._number(t, instance, numbers) for t in problem.elements[arg])
            elif isinstance(arg, str) and problem.sorts.get(arg) in ("Tensor", "Kernel", "Tuple"):
                made = problem.made.get(arg)
                number = self._number(arg, instance, numbers)
                yield None if made is not None and made.head == "R.none" else number
            else:
                value = instance.get(arg)
                yield ShapeStructInfo(value, len(value)) if isinstance(value, tuple) else value

    def _written(self, arg: Arg, sort: str, instance: Instance, numbers: dict[str, int]) -> str:
        problem = instance.problem
        match sort:
            case "Tensor" | "Tuple":
                return f"t{numbers[str(arg)]}"
            case "Kernel":
                node = problem.made.get(str(arg))
                if node is None:
                    return f"(K.load (Leaf {numbers[str(arg)]}))"
                sorts = self.declarations[node.head].sorts
                args = [
                    self._written(a, s, instance, numbers)
                    for a, s in zip(node.args, sorts, strict=True)
                ]
                return f"({' '.join([node.head, *args])})"
            case "Tensors":
                parts = problem.elements[str(arg)]
                return literals.vector([f"t{numbers[t]}" for t in parts])
            case "Dim":
                return self._dim(instance.get(arg))
            case "Shape":
                return self._shape(instance.get(arg))
            case "Prim":
                return literals.prim(instance.get(arg))
            case _:
                return literals.attribute(sort, instance.get(arg)) or ""

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that make each instance."""
        return tuple(map("\n".join, self.texts))

    @property
    def symbols(self) -> Sequence[str]:
        """The symbols of all shapes."""
        infos = [s.info for s in self.steps if s.info is not None]
        return sorted({n for i in infos for d in i.dims or () for n in dims.symbols(d)})


def _narrow(variable: str, instance: Instance) -> Iterator[tuple[str, int]]:
    """What the constant `variable` may be stored as."""
    for premise in instance.problem.premises:
        if premise.head == "within-tolerance" and premise.args[0] == variable:
            _, dtype, axis = premise.args
            yield instance.get(dtype), instance.get(axis)


def host_value(value: PrimValue, extents: Mapping[str, int]) -> Any:
    """A scalar of the host, as operators get it."""
    import numpy as np

    number = value.value if isinstance(value.value, float) else dims.evaluate(value.value, extents)
    return number if value.dtype in ("int64", "float64") else np.asarray(number, value.dtype)
