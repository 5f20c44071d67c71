"""Damage to ONNX models: of arbitrary bytes, and of valid protocol buffers."""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

Place: TypeAlias = tuple[Any, Any]
"""A message, and a field that is set in it."""

INTEGERS = (-(2**63), -(2**31), -7, -2, -1, 0, 1, 2, 3, 5, 7, 8, 16, 100, 2**20, 2**31 - 1, 2**31)
LONG = (*INTEGERS, 2**32, 2**40, 2**62, 2**63 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    *("", " ", "\0", "ü", "main", "x", "y", "None", "class", "/a/b.c:0", "a" * 3000, "0"),
    *("n + 1", "n // 0", "n ** n ** n", "(" * 900, "9" * 6000, "__import__('os')", "-n"),
    *("../w", "/dev/zero", "\0itself", "ai.onnx.ml", "com.microsoft", "own", "com.nobody"),
    *("Loop", "If", "Scan", "Constant", "Relu", "Add", "Concat", "Identity", "Reshape", "Twice"),
    *("reflect", "linear", "NOTSET", "SAME_UPPER", "VALID", "bij,bjk->bik", "...,...", "i->"),
)


def mutated(original: onnx.ModelProto, seed: int) -> tuple[str, bytes]:
    """`original` with a damage chosen by `seed`, serialized, and the name of its kind."""
    random = Random(seed)
    name = random.choice(list(_KINDS))
    return name, _KINDS[name](random, original)


# --- on any bytes ---------------------------------------------------------------------


def _flipped(random: Random, original: onnx.ModelProto) -> bytes:
    damaged = bytearray(original.SerializeToString())
    for _ in range(random.choice([1, 1, 1, 2, 4, 16])):
        damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def _cut(random: Random, original: onnx.ModelProto) -> bytes:
    data = original.SerializeToString()
    first, last = sorted(random.randrange(len(data)) for _ in range(2))
    return random.choice(
        [data[:last], data[first:], data[:first] + data[last:], data[:last] + data]
    )


# --- on messages ----------------------------------------------------------------------


def _on_messages(change: Callable[[Random, list[Place]], None]) -> Callable[..., bytes]:
    def damage(random: Random, original: onnx.ModelProto) -> bytes:
        model = onnx.ModelProto()
        model.CopyFrom(original)
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            if places := list(_places(model)):
                change(random, places)
        return model.SerializeToString()

    return damage


def _places(message: Any) -> Iterator[Place]:
    for field, value in message.ListFields():
        yield message, field
        if field.message_type:
            for inner in value if field.is_repeated else (value,):
                yield from _places(inner)


def _deleted(random: Random, places: list[Place]) -> None:
    message, field = random.choice(places)
    if not field.is_repeated:
        message.ClearField(field.name)
        return
    values = getattr(message, field.name)
    del values[random.randrange(len(values))]


def _doubled(random: Random, places: list[Place]) -> None:
    repeated = [place for place in places if place[1].is_repeated]
    if repeated:
        message, field = random.choice(repeated)
        values = getattr(message, field.name)
        values.extend([random.choice(list(values))] * random.choice([1, 1, 2, 30]))


def _exchanged(random: Random, places: list[Place]) -> None:
    """Exchange two fields of one kind, or the elements of one field."""
    message, field = random.choice(places)
    if field.is_repeated and random.random() < 0.5:
        values = list(getattr(message, field.name))
        random.shuffle(values)
        _set(message, field, values)
        return
    same = [p for p in places if p[1].full_name == field.full_name]
    other, _ = random.choice(same)
    first, second = (_copied(m, field) for m in (message, other))
    _set(message, field, second)
    _set(other, field, first)


def _copied(message: Any, field: Any) -> Any:
    whole = type(message)()
    whole.CopyFrom(message)
    value = getattr(whole, field.name)
    return list(value) if field.is_repeated else value


def _set(message: Any, field: Any, value: Any) -> None:
    message.ClearField(field.name)
    if field.is_repeated:
        getattr(message, field.name).extend(value)
    elif field.message_type:
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


def _numbers(random: Random, places: list[Place]) -> None:
    numeric = [p for p in places if p[1].cpp_type in _NUMBERS]
    if not numeric:
        return
    message, field = random.choice(numeric)
    old_value = getattr(message, field.name)
    old = random.choice(list(old_value)) if field.is_repeated else old_value
    choices = FLOATS if field.cpp_type in _FLOATS else (*LONG, *range(30), old + 1, old - 1)
    new = random.choice(choices)
    if field.cpp_type in _SHORT:
        new = (new + 2**31) % 2**32 - 2**31
    try:
        _replace(random, message, field, new)
    except (ValueError, OverflowError):  # not a value of the enumeration, or out of range
        _replace(random, message, field, 1)


def _attributes(random: Random, places: list[Place]) -> None:
    """Replace an attribute's value by that of another attribute of the same type."""
    values = [(m, f) for m, f in places if m.DESCRIPTOR.name == "AttributeProto" and f.name in _OF]
    if values:
        message, field = random.choice(values)
        same = [m for m, f in values if f.name == field.name]
        _set(message, field, _copied(random.choice(same), field))
        if field.name == "ints" and random.random() < 0.5:
            new = random.choice(LONG)
            getattr(message, field.name).insert(0, (new + 2**63) % 2**64 - 2**63)


def _initializers(random: Random, places: list[Place]) -> None:
    """Other elements of a constant, mostly a shape, an axis, a start or an end."""
    tensors = [m for m, f in places if m.DESCRIPTOR.name == "TensorProto" and f.name == "data_type"]
    if not tensors:
        return
    tensor = random.choice(tensors)
    try:
        array = np.array(numpy_helper.to_array(tensor))
        if array.size and array.dtype.kind in "iuf":
            place = np.unravel_index(random.randrange(array.size), array.shape)
            numbers = FLOATS if array.dtype.kind == "f" else LONG
            array[place] = np.array(random.choice(numbers)).astype(array.dtype)
        elif array.dtype == bool:
            array = ~array
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(array, name))
    except (ValueError, TypeError, OverflowError):  # no longer a valid tensor
        return


def _texts(random: Random, places: list[Place]) -> None:
    textual = [p for p in places if p[1].cpp_type == _STRING]
    if not textual:
        return
    message, field = random.choice(textual)
    if field.type == field.TYPE_BYTES:
        new: Any = random.choice(
            [*(t.encode() for t in TEXTS), b"\xff\xfe", bytes(64), b"\x80" * 8]
        )
    elif random.random() < 0.5:
        new = random.choice(TEXTS)
    else:
        new = random.choice([t for p in textual for t in _all(p) if isinstance(t, str)])
    _replace(random, message, field, new)


def _all(place: Place) -> list[Any]:
    message, field = place
    value = getattr(message, field.name)
    return list(value) if field.is_repeated else [value]


def _replace(random: Random, message: Any, field: Any, new: Any) -> None:
    if not field.is_repeated:
        setattr(message, field.name, new)
        return
    values = getattr(message, field.name)
    values[random.randrange(len(values))] = new


_OF = ("f", "i", "s", "floats", "ints", "strings")
"""The fields of an attribute that hold its value."""

_FLOATS, _SHORT, _STRING = (5, 6), (1, 3, 8), 9
_NUMBERS = (1, 2, 3, 4, 5, 6, 8)
"""The type numbers of protocol buffers: of 32 bits, of 64, of floats, of enums."""

_KINDS: Mapping[str, Callable[..., bytes]] = {
    "flipped bits": _flipped,
    "cut": _cut,
    "deleted": _on_messages(_deleted),
    "doubled": _on_messages(_doubled),
    "exchanged": _on_messages(_exchanged),
    "numbers": _on_messages(_numbers),
    "attributes": _on_messages(_attributes),
    "initializers": _on_messages(_initializers),
    "texts": _on_messages(_texts),
}
