"""Reads an executable from the sections of a file, and verifies everything.

Nothing is trusted: every index is within its table, every text is a string, every instruction
passes `check.find_fault`.  An error is an `ExecutableError` that names the section.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

import numpy as np

from relax_egraph.errors import ExecutableError
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.vm.bytecode import Instruction, decode
from relax_egraph.vm.check import Bounds, find_fault
from relax_egraph.vm.dim_program import parse_dim
from relax_egraph.vm.executable import ConstantValue, Executable, KernelSet, VMFunction
from relax_egraph.vm.json_table import json_table
from relax_egraph.vm.sections import Sections
from relax_egraph.vm.storage import Bytes, tensor_at

MOST_DIMENSIONS = 32
"""The highest rank of a tensor: the limit of numpy is 32, in newer versions 64."""


def read_executable(sections: Sections) -> Executable:
    """The executable in `sections`; raises `ExecutableError`."""
    code, offsets = _words("code", sections), _words("offsets", sections)
    executable = Executable(
        functions=read_functions(sections),
        constants=_constants(_json("constants", sections), sections["tensors"]),
        callees=_callees(_json("callees", sections)),
        code=code,
        offsets=offsets,
        kernels=_kernels(_json("kernels", sections), sections["objects"]),
        metadata=read_metadata(sections),
        origins=_origins(_json("origins", sections), len(offsets)),
        work=_work(_json("work", sections)),
    )
    _check_code(executable)
    return executable


def _check_code(executable: Executable) -> None:
    instructions = _instructions(executable)
    names: set[str] = set()
    at = 0
    for f in executable.functions:
        if f.start != at or not f.start < f.end <= len(instructions):
            raise ExecutableError(
                f"section functions: {f.name} is instructions {f.start} to {f.end}, needs to begin "
                f"at {at} and end within {len(instructions)}"
            )
        at = f.end
        names.add(f.name)
        bounds = Bounds(f.num_registers, len(executable.constants), len(executable.callees))
        if fault := find_fault(instructions[f.start : f.end], len(f.params), bounds):
            raise ExecutableError(f"section code: function {f.name!r}: {fault}")
    if at != len(instructions) or len(names) != len(executable.functions):
        raise ExecutableError("section functions: they are not the whole code, each once")


def _instructions(executable: Executable) -> list[Instruction]:
    words: list[int] = executable.code.tolist()
    instructions: list[Instruction] = []
    at = 0
    for number, offset in enumerate(executable.offsets.tolist()):
        if offset != at:
            raise ExecutableError(
                f"section offsets: instruction {number} begins at word {offset}, needs {at}"
            )
        instruction, at = decode(words, at)
        instructions.append(instruction)
    if at != len(words):
        raise ExecutableError(
            f"section offsets: {len(words) - at} words of code are in no instruction"
        )
    return instructions


def read_functions(sections: Sections) -> tuple[VMFunction, ...]:
    """The functions in `sections`; where their code is, is not checked."""
    functions: list[VMFunction] = []
    for item in _list("functions", _json("functions", sections)):
        match item:
            case [str(name), [*params], registers, start, end, [*info], bool(private)] if (
                all(map(_is_count, (registers, start, end)))
                and all(isinstance(p, str) for p in (*params, *info))
                and len(set(params)) == len(params) == len(info)
            ):
                function = VMFunction(
                    name, tuple(params), registers, start, end, tuple(info), private
                )
                functions.append(function)
            case _:
                raise ExecutableError(f"section functions: {_shown(item)} is no function")
    return tuple(functions)


def read_metadata(sections: Sections) -> dict[str, str]:
    """The texts of the metadata in `sections`."""
    return _texts("metadata", _json("metadata", sections))


def _callees(written: Any) -> tuple[str, ...]:
    names = _list("callees", written)
    if not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise ExecutableError("section callees: needs names, each once")
    return tuple(names)


def _constants(written: Any, tensors: Bytes) -> tuple[ConstantValue, ...]:
    return tuple(_constant(item, tensors) for item in _list("constants", written))


def _constant(item: Any, tensors: Bytes) -> ConstantValue:
    match item:
        case ["tensor", str(dtype), [*shape], offset] if dtype in DTYPES and _is_count(offset):
            if all(map(_is_count, shape)) and len(shape) <= MOST_DIMENSIONS:
                return _tensor(tensors, offset, tuple(shape), np.dtype(dtype))
        case ["shape", [*dims]] if all(map(_is_int, dims)):
            return tuple(dims)
        case ["int", value] if _is_int(value):
            return value
        case ["float", str(value)]:
            try:
                return float.fromhex(value)
            except (ValueError, OverflowError):
                pass
        case ["str", str(value)]:
            return value
        case ["dtype", str(name)] if name in DTYPES:
            return np.dtype(name)
        case _:
            pass
    raise ExecutableError(f"section constants: {_shown(item)} is no constant")


def _tensor(data: Bytes, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    if offset % dtype.itemsize or offset + math.prod(shape) * dtype.itemsize > data.size:
        raise ExecutableError(
            f"section tensors: no {dtype.name}{list(shape)} at byte {offset} of {data.size}"
        )
    try:
        constant = tensor_at(data, offset, shape, dtype)
    except ValueError as error:  # an extent too large for numpy
        raise ExecutableError(f"section tensors: {error}") from None
    constant.flags.writeable = False
    return constant


def _kernels(written: Any, objects: Bytes) -> tuple[KernelSet, ...]:
    match written:
        case {"sizes": [*sizes], "sets": [*sets]} if len(written) == 2 and all(
            map(_is_count, sizes)
        ):
            if objects.size != sum(sizes):
                raise ExecutableError(
                    f"section objects: {objects.size} bytes, the kernels have {sum(sizes)}"
                )
        case _:
            raise ExecutableError(f"section kernels: {_shown(written)} is no table of kernels")
    ends = list(accumulate(sizes, initial=0))
    parts = [objects[start:end].tobytes() for start, end in pairwise(ends)]
    return tuple(_kernel_set(item, parts) for item in sets)


def _kernel_set(written: Any, parts: Sequence[bytes]) -> KernelSet:
    match written:
        case [str(target), dict(symbols), [code, *places]] if all(
            _is_count(place) and place < len(parts) for place in (code, *places)
        ):
            kernels = _texts("kernels", symbols)
            return KernelSet(target, parts[code], kernels, tuple(parts[p] for p in places))
        case _:
            raise ExecutableError(f"section kernels: {_shown(written)} is no kernel set")


def _origins(written: Any, count: int) -> tuple[str, ...]:
    origins = _list("origins", written)
    lines = all(isinstance(o, str) and o.isprintable() for o in origins)
    if not lines or len(origins) not in (0, count):
        raise ExecutableError(f"section origins: needs a line for each of {count} instructions")
    return tuple(origins)


def _work(written: Any) -> dict[str, str]:
    work = _texts("work", written)
    for name, text in work.items():
        try:
            parse_dim(text)
        except ExecutableError as error:
            raise ExecutableError(f"section work: {name}: {error}") from None
    return work


def _words(name: str, sections: Sections) -> Any:
    """A copy of the words, so that checked code cannot change with the file."""
    content = sections[name]
    if content.size % 8:
        raise ExecutableError(f"section {name}: {content.size} bytes are no whole words")
    return content.view("<i8").astype(np.int64)


def _json(name: str, sections: Sections) -> Any:
    return json_table(name, sections[name].tobytes())


def _list(name: str, written: Any) -> list[Any]:
    if not isinstance(written, list):
        raise ExecutableError(f"section {name}: {_shown(written)} is no list")
    return written


def _texts(name: str, written: Any) -> dict[str, str]:
    if not isinstance(written, dict) or not all(isinstance(v, str) for v in written.values()):
        raise ExecutableError(f"section {name}: {_shown(written)} is no table of texts")
    return written


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> TypeGuard[int]:
    return _is_int(value) and 0 <= value < 1 << 62


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
