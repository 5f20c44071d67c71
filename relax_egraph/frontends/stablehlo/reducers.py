"""What the regions of reductions, scatters and sorts compute, recognized by their operations."""

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

_COMMUTATIVE = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def reducer(block: ir.Block) -> list[str] | None:
    """The operation that combines each pair ``(arguments[k], arguments[count + k])``.

    Such as ``["add"]``; ``second`` is the other of the pair.  ``None`` if it is no such region.
    """
    count = len(block.arguments) // 2
    names: list[str] = []
    for place, value in enumerate(_returned(block)):
        first, second = block.arguments[place], block.arguments[count + place]
        if value == second:
            names.append("second")
            continue
        operation = _producer(value)
        name = "" if operation is None else operation.name.removeprefix("stablehlo.")
        if operation is None or name not in _COMMUTATIVE:
            return None
        if {*operation.operands} != {first, second}:
            return None
        names.append(name)
    return names


def selects_extreme(block: ir.Block) -> str | None:
    """``argmax`` or ``argmin``, if `block` keeps the greater or lesser of pairs with an index."""
    if len(block.arguments) != 4:
        return None
    directions = set[str]()
    for view in block.operations:
        operation = view.operation
        if operation.name == "stablehlo.compare":
            if {*operation.operands} == {block.arguments[0], block.arguments[2]}:
                way = direction(operation)
                turned = operation.operands[0] == block.arguments[2]
                directions.add(_TURNED.get(way, way) if turned else way)
        elif operation.name not in _OF_CHOICE:
            return None
    ways = directions - {"EQ", "NE"}
    if ways and ways <= {"GT", "GE"}:
        return "argmax"
    return "argmin" if ways and ways <= {"LT", "LE"} else None


_TURNED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
_OF_CHOICE = ("stablehlo.and", "stablehlo.or", "stablehlo.select", "stablehlo.return")


def sort_keys(block: ir.Block) -> list[tuple[int, bool]] | None:
    """The operands that a comparator compares, the first key first, and whether descending.

    Keys may be made canonical: zeros of one sign, one NaN.  ``None`` if it is no such region.
    """
    (value,) = _returned(block)
    return _keys(value, list(block.arguments))


def _keys(value: ir.Value, arguments: Sequence[ir.Value]) -> list[tuple[int, bool]] | None:
    operation = _producer(value)
    if operation is None:
        return None
    match operation.name:
        case "stablehlo.compare":
            return _compared(operation, arguments)
        case "stablehlo.or":
            for less, other in ((0, 1), (1, 0)):
                both = _producer(operation.operands[other])
                if both is not None and both.name == "stablehlo.and":
                    for same, rest in ((0, 1), (1, 0)):
                        keys = _lexicographic(
                            both.operands[same],
                            operation.operands[less],
                            both.operands[rest],
                            arguments,
                        )
                        if keys is not None:
                            return keys
            return None
        case "stablehlo.select":
            same, rest, less = operation.operands
            return _lexicographic(same, less, rest, arguments)
        case _:
            return None


def _lexicographic(
    same: ir.Value, less: ir.Value, rest: ir.Value, arguments: Sequence[ir.Value]
) -> list[tuple[int, bool]] | None:
    """The keys of ``less or (same and rest)``."""
    equal = _producer(same)
    if equal is None or equal.name != "stablehlo.compare" or direction(equal) != "EQ":
        return None
    first, others = _keys(less, arguments), _keys(rest, arguments)
    sides = {_source(v, arguments) for v in equal.operands}
    if first is None or others is None or len(first) != 1:
        return None
    key = first[0][0]
    return [*first, *others] if sides == {2 * key, 2 * key + 1} else None


def _compared(
    operation: ir.Operation, arguments: Sequence[ir.Value]
) -> list[tuple[int, bool]] | None:
    left, right = (_source(v, arguments) for v in operation.operands)
    way = direction(operation)
    if left is None or right is None or left // 2 != right // 2 or left == right:
        return None
    if way not in ("LT", "GT"):
        return None
    return [(left // 2, (way == "GT") == (left < right))]


def _source(value: ir.Value, arguments: Sequence[ir.Value]) -> int | None:
    """The place of the only argument that `value` is computed of."""
    found, waiting = set[int](), [value]
    while waiting:
        each = waiting.pop()
        if each in arguments:
            found.add(arguments.index(each))
            continue
        operation = _producer(each)
        if operation is None or operation.name not in _CANONICAL:
            return None
        waiting.extend(operation.operands)
    return found.pop() if len(found) == 1 else None


_CANONICAL = ("stablehlo.compare", "stablehlo.select", "stablehlo.constant", "stablehlo.convert")


def direction(operation: ir.Operation) -> str:
    """The direction of a comparison: ``LT``."""
    attribute = operation.attributes["comparison_direction"]
    return str(stablehlo.ComparisonDirectionAttr(attribute).value)


def _returned(block: ir.Block) -> list[ir.Value]:
    return list(block.operations[len(block.operations) - 1].operation.operands)


def _producer(value: ir.Value) -> ir.Operation | None:
    """The operation whose result is `value`; ``None`` for an argument."""
    return value.owner if isinstance(value, ir.OpResult) else None
