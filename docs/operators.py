"""Writes operators.md, the list of all operators, from their definitions: ``make docs``."""

import sys
from collections.abc import Iterator
from pathlib import Path

from relax_egraph.ir import ops
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.op import OPS, REQUIRED, AttrParam, Op, Operand
from relax_egraph.lower.legalize import BUILTINS, CHECKS, LEGALIZE, VIEWS
from relax_egraph.script.literals import literal_text

PAGE = Path(__file__).with_name("operators.md")

KINDS = {"tensor": "", "tensors": ": tensors", "shape": ": shape", "prim": ": number", "any": ""}

INTRODUCTION = """\
# Operators

{count} operators and {intrinsics} intrinsics. This page is generated: `make docs`.

A script calls an operator as `R.name(operands, attribute=value)`; an operand in brackets may be
left out. *Runs as* says what a call becomes where shapes and dtypes are known: `loops` (a loop
function, by itself), `fused` (loops that may be one step of a kernel with others), `view` (the
same memory under another shape), `builtin` (of the machine, `vm.builtin.<name>`) or `numpy` (a
packed function, `relax.run.<name>`). Where shapes are known only at run time every operator but
builtins runs as a packed function.

The dtypes are {dtypes}.
`float16` and `bfloat16` are for memory: their numbers are computed in `float32`, and rounded where
a kernel stores them or `R.astype` asks for it.
"""


def page() -> str:
    """The whole page."""
    intrinsics = [op for op in OPS.values() if op.intrinsic]
    dtypes = ", ".join(f"`{dtype}`" for dtype in DTYPES)
    count = len(OPS) - len(intrinsics)
    parts = [INTRODUCTION.format(count=count, intrinsics=len(intrinsics), dtypes=dtypes)]
    for title, promise, members in families():
        parts.append(f"\n## {title}\n\n{promise}" + "".join(_table(members)))
    parts.append("\n## Intrinsics: calls of what lies below the graph\n\n| | |\n|---|---|\n")
    parts += [f"| `{op}` | {_cell(op.meaning)} |\n" for op in intrinsics]
    return "".join(parts)


def families() -> Iterator[tuple[str, str, list[Op]]]:
    """The modules that define operators: their first line, what follows it, and the operators."""
    for name in dir(ops):
        module = sys.modules.get(f"{ops.__name__}.{name}")
        defined = [op for op in OPS.values() if op.rule.__module__ == f"{ops.__name__}.{name}"]
        if module is not None and defined and not all(op.intrinsic for op in defined):
            first, _, rest = (module.__doc__ or "").replace("``", "`").partition("\n")
            promise = f"{rest.strip()}\n\n" if rest.strip() else ""
            yield first.rstrip("."), promise, [op for op in defined if not op.intrinsic]


def _table(members: list[Op]) -> Iterator[str]:
    yield "| call | meaning | runs as |\n|---|---|---|\n"
    for op in members:
        yield f"| `{_usage(op)}` | {_cell(op.meaning)} | {_runs_as(op)} |\n"


def _usage(op: Op) -> str:
    parameters = [*map(_operand, op.operands), *map(_attribute, op.attrs)]
    return f"{op}({', '.join(parameters)})"


def _operand(operand: Operand) -> str:
    written = f"{operand.name}{KINDS[operand.kind]}"
    return f"[{written}]" if operand.optional else written


def _attribute(attr: AttrParam) -> str:
    given = attr.default
    return f"{attr.name}=…" if given is REQUIRED else f"{attr.name}={literal_text(given)}"


def _runs_as(op: Op) -> str:
    if op.name in VIEWS:
        return "view"
    if op.name in BUILTINS:
        return "builtin"
    if op.name not in LEGALIZE.keys() | CHECKS:
        return "numpy"
    return "fused" if op.fusible else "loops"


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
