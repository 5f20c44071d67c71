"""A program and its price as what JSON can hold, and back."""

from dataclasses import asdict, replace
from typing import TypeAlias, cast

from relax_egraph.egraph.node import Node
from relax_egraph.egraph.view import Choice, ClassId, ENode, Program, View
from relax_egraph.extract import Extraction
from relax_egraph.ir.kernel import Input, Kernel, Promise, Step
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo
from relax_egraph.optimize.cache.saturated import Nodes, node_data
from relax_egraph.optimize.cache.values import (
    Data,
    Infos,
    attrs_data,
    attrs_of,
    check,
    infos_of,
    op_of,
    shape_data,
    shape_of,
    whole,
)

Operand: TypeAlias = int | tuple[int, ...] | ShapeStructInfo
"""What a step of a kernel has for an operand."""


def extraction_data(extraction: Extraction) -> Data:
    """`extraction`; the numbers of classes are those of the view that it is of."""
    infos = Infos()
    program = [[_how(c.how, infos), c.inputs, c.outputs] for c in extraction.program]
    fields = asdict(replace(extraction, program=()))
    return {**fields, "program": program, "infos": infos.data()}


def extraction_of(data: Data, view: View) -> Extraction:
    """The extraction that was written, of `view`."""
    read = _Choices(infos_of(data["infos"]), Nodes(view.classes, view))
    program = tuple(read.choice(*row) for row in data["program"])
    _check_order(program, view)
    fields: Data = {name: data[name] for name in data if name not in ("program", "infos")}
    fields["chosen"] = tuple(whole(number) for number in fields["chosen"])
    return Extraction(program, **fields)


def _how(how: Kernel | ENode, infos: Infos) -> Data:
    if isinstance(how, Node):
        return node_data(how)
    inputs = [[infos.number(i.struct_info), i.scalar] for i in how.inputs]
    steps = [
        [
            *(s.op.name, list(map(_operand_data, s.operands))),
            *(attrs_data(s.attrs), infos.number(s.struct_info)),
        ]
        for s in how.steps
    ]
    promise = how.promise and (how.promise.anchor, how.promise.seconds)
    return {"inputs": inputs, "steps": steps, "outputs": how.outputs, "promise": promise}


def _operand_data(operand: Operand) -> Data:
    return shape_data(operand) if isinstance(operand, ShapeStructInfo) else operand


class _Choices:
    """Reads choices; `infos` are the struct infos that stand by number."""

    def __init__(self, infos: list[TensorStructInfo], nodes: Nodes) -> None:
        self._infos = infos
        self._nodes = nodes

    def choice(self, how: Data, inputs: Data, outputs: Data) -> Choice:
        choice = self._kernel(**how) if isinstance(how, dict) else self._nodes.node(*how)
        read, written = self._nodes.classes(inputs), self._nodes.classes(outputs)
        if isinstance(choice, Kernel):
            check(len(read) == len(choice.inputs) and len(written) == len(choice.outputs))
        else:
            check(read == choice.operands and len(written) == 1)
        return Choice(choice, read, written)

    def _kernel(self, inputs: Data, steps: Data, outputs: Data, promise: Data) -> Kernel:
        read = tuple(Input(self._infos[whole(info)], _scalar(scalar)) for info, scalar in inputs)
        computed = tuple(self._step(len(read) + k, *step) for k, step in enumerate(steps))
        count = len(read) + len(computed)
        written = tuple(whole(number, below=count) for number in outputs)
        return Kernel(read, computed, written, _promise(promise))

    def _step(self, number: int, name: Data, operands: Data, attrs: Data, info: Data) -> Step:
        """The step that makes value `number`, of those before it."""
        op, values = op_of(name), tuple(_operand(o, number) for o in operands)
        check(op.required <= len(values) <= len(op.operands))
        return Step(op, values, attrs_of(attrs), self._infos[whole(info)])


def _operand(data: Data, number: int) -> Operand:
    """An operand of the step that makes value `number`."""
    match data:
        case {"shape": _}:
            return shape_of(data)
        case list():
            return tuple(whole(value, below=number) for value in cast(list[Data], data))
        case _:
            return whole(data, below=number)


def _promise(data: Data) -> Promise | None:
    if data is None:
        return None
    anchor, seconds = data
    check(type(anchor) is str and type(seconds) is float)
    return Promise(anchor, seconds)


def _scalar(data: Data) -> float | int | bool | None:
    check(data is None or type(data) in (float, int, bool))
    return data


def _check_order(program: Program, view: View) -> None:
    """Raise `ValueError` unless each choice reads roots of earlier choices only."""
    computed: set[ClassId] = set()
    for choice in program:
        check(computed.issuperset(choice.inputs))
        computed.update(choice.outputs)
    check(computed.issuperset(view.roots))
