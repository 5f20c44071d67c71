"""Instances as one program of ground terms, with a step for each value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.encoding.constructors import NONE, constructors
from relax_egraph.egraph.node import LEAF, SCALAR, Node, leaf_node
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.ir import dims
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.struct_info import Shape, TensorStructInfo
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.problem import Application
from relax_egraph.verify.instances.query import Arg


@dataclass(frozen=True, slots=True)
class Step:
    """Value `number` of the program, for `variable` of an instance.

    The operands of its `node` are other steps; the node of an absent operand is ``None``.  A
    `constant` is a leaf.  `narrow` lists storage that does not change the value: a dtype, and the
    axis along which elements share a scale.  The elements of a step that `has_reciprocal` are far
    from 0 and from infinity.
    """

    number: int
    instance: int
    variable: str
    node: Node[int] | None
    info: TensorStructInfo | None = None
    scalar: float | None = None
    constant: bool = False
    narrow: tuple[tuple[str, int], ...] = ()
    has_reciprocal: bool = False

    @property
    def is_leaf(self) -> bool:
        """Whether the value is an input of the program."""
        return self.node is not None and self.node.op == LEAF


@dataclass(slots=True)
class Program:
    """Independent instances in one program: no two share a leaf."""

    declarations: Mapping[str, Declaration]
    instances: list[Instance] = field(default_factory=list[Instance])
    steps: list[Step] = field(default_factory=list[Step])
    texts: list[list[str]] = field(default_factory=list[list[str]])
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, instance: Instance) -> None:
        """Add the nodes of `instance` that a rule matches, their operands, and facts about them."""
        numbers: dict[str, int] = {}
        self.instances.append(instance)
        self.texts.append([])
        self._names.clear()
        problem = instance.problem
        roots = [n.result for n in problem.nodes if not n.built]
        roots += [*problem.scalars, *problem.constants, *problem.positions]
        roots += [str(a) for use in problem.uses for a in use.args if problem.tensors(a)]
        for variable in dict.fromkeys(roots):
            self._number(variable, instance, numbers)
        for use in problem.uses:
            args = (
                f"t{numbers[str(a)]}" if problem.tensors(a) else str(instance.get(a))
                for a in use.args
            )
            self.texts[-1].append(f"({use.head} {' '.join(args)})")
        positions = {
            numbers[t]: instance.get(i)
            for t, i in problem.positions.items()
            if not isinstance(i, str) or i in instance.values
        }
        for step in self.steps:
            if step.instance == self._last and step.info is not None:
                at = positions.get(step.number, step.number)
                if problem.sorts.get(step.variable) == "Tensor":
                    self.texts[-1].append(f"(set (source-index t{step.number}) {at})")

    def _number(self, variable: str, instance: Instance, numbers: dict[str, int]) -> int:
        if variable in numbers:
            return numbers[variable]
        problem = instance.problem
        node = problem.producers.get(variable)
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
        narrow, node = tuple(_narrow(variable, instance)), leaf_node(number)
        inverted = _has_reciprocal(variable, instance)
        step = Step(number, self._last, variable, node, info, value, constant, narrow, inverted)
        self.steps.append(step)
        name = f"t{number}"
        self.texts[-1].append(f"(let {name} (Leaf {number})) (union {name} (Value {number}))")
        for dtype, axis in narrow:
            text = literals.string(dtype)
            self.texts[-1].append(f"(within-tolerance {name} {text} {axis})")
        if inverted:
            self.texts[-1].append(f"(has-reciprocal {name})")
        self._claim(name, info)
        static = [d for d in shape if isinstance(d, int)]
        if value is not None:
            self.texts[-1].append(f"(set (const-scalar {name}) {literals.number(value)})")
        if constant or (value is not None and len(static) == len(shape)):
            self.texts[-1].append(f"(is-const {name})")
        return number

    def _claim(self, name: str, info: TensorStructInfo) -> None:
        """Add the shape and dtype of a value, as for every value of a program."""
        shape = info.dims or ()
        self.texts[-1].append(f"(shape-claim {name} {self._shape(shape)})")
        self.texts[-1].append(f"(dtype-claim {name} {literals.string(info.dtype or '')})")

    def _dim(self, dim: dims.Dim) -> str:
        return self._named(literals.dim(dim))

    def _shape(self, shape: Shape) -> str:
        return self._named(literals.vector([self._dim(d) for d in shape]))

    def _named(self, text: str) -> str:
        """A name for `text`: egglog type-checks a repeated term only once."""
        if text not in self._names:
            self._names[text] = f"named-{len(self._names)}"
            self.texts[-1].append(f"(let {self._names[text]} {text})")
        return self._names[text]

    def _constant(self, variable: str, instance: Instance) -> bool:
        """Whether a constant of the instance depends on the leaf `variable`."""
        todo = list(instance.problem.constants)
        for constant in todo:
            if constant == variable:
                return True
            node = instance.problem.producers.get(constant)
            todo += [t for a in (node.args if node else ()) for t in instance.problem.tensors(a)]
        return False

    def _node(
        self,
        application: Application,
        variable: str,
        instance: Instance,
        numbers: dict[str, int],
        value: float | None,
    ) -> int:
        step_node = self._step_node(application, instance, numbers)
        number = len(self.steps)
        sort = instance.problem.sorts.get(variable, "Tensor")
        info = None if sort == "Tuple" or step_node is None else instance.info(variable)
        is_number = step_node is not None and step_node.op == SCALAR
        scalar = step_node.scalar if step_node and is_number else value
        self.steps.append(Step(number, self._last, variable, step_node, info, scalar))
        sorts = self.declarations[application.head].sorts
        args = [
            self._written(a, s, instance, numbers)
            for a, s in zip(application.args, sorts, strict=True)
        ]
        term = f"({' '.join([application.head, *args])})"
        if sort == "Kernel":
            term = f"(K.store {self._written(variable, sort, instance, numbers)})"
        name = f"({'TupleValue' if sort == 'Tuple' else 'Value'} {number})"
        self.texts[-1].append(f"(let t{number} {term}) (union t{number} {name})")
        if info is not None:
            self._claim(f"t{number}", info)
        if value is not None and not is_number:
            self.texts[-1].append(f"(set (const-scalar t{number}) {literals.number(value)})")
        return number

    def _step_node(
        self, application: Application, instance: Instance, numbers: dict[str, int]
    ) -> Node[int] | None:
        """The node with steps as operands; ``None`` for an absent operand."""
        problem = instance.problem
        args: list[Any] = []
        for arg in application.args:
            if isinstance(arg, str) and arg in problem.elements:
                parts = problem.elements[arg]
                args.append(tuple(self._number(t, instance, numbers) for t in parts))
            elif isinstance(arg, str) and problem.sorts.get(arg) in ("Tensor", "Kernel", "Tuple"):
                number = self._number(arg, instance, numbers)
                args.append(None if self.steps[number].node is None else number)
            else:
                args.append(instance.get(arg))
        return None if application.head == NONE else constructors()[application.head].node(args)

    def _written(self, arg: Arg, sort: str, instance: Instance, numbers: dict[str, int]) -> str:
        problem = instance.problem
        match sort:
            case "Tensor" | "Tuple":
                return f"t{numbers[str(arg)]}"
            case "Kernel":
                node = problem.producers.get(str(arg))
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
    def _last(self) -> int:
        """The index of the instance that `add` is adding."""
        return len(self.instances) - 1

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that add each instance to an e-graph."""
        return tuple(map("\n".join, self.texts))

    @property
    def symbols(self) -> Sequence[str]:
        """The symbols of all shapes."""
        infos = [s.info for s in self.steps if s.info is not None]
        return sorted({n for i in infos for d in i.dims or () for n in dims.symbols(d)})


def _narrow(variable: str, instance: Instance) -> Iterator[tuple[str, int]]:
    """The storage that premises permit for the constant `variable`: dtypes and axes."""
    for premise in instance.problem.premises:
        if premise.head == "within-tolerance" and premise.args[0] == variable:
            _, dtype, axis = premise.args
            yield instance.get(dtype), instance.get(axis)


def _has_reciprocal(variable: str, instance: Instance) -> bool:
    """Whether a premise asks for the reciprocal of `variable`."""
    premises = instance.problem.premises
    return any(p.head == "has-reciprocal" and p.args[0] == variable for p in premises)


def host_value(value: PrimValue, extents: Mapping[str, int]) -> Any:
    """A host scalar as an argument of an operator."""
    import numpy as np

    number = value.value if isinstance(value.value, float) else dims.evaluate(value.value, extents)
    return number if value.dtype in ("int64", "float64") else np.asarray(number, value.dtype)
