"""Writes builtins.md, the list of the machine's own packed functions: ``make docs``."""

from pathlib import Path

from relax_egraph.vm.builtins import SUBJECTS, Builtin

PAGE = Path(__file__).with_name("builtins.md")

INTRODUCTION = """\
# Builtins

{count} packed functions that every machine has. This page is generated: `make docs`.

Bytecode calls them by name, `vm.builtin.<name>`; a script by
`R.call_packed("vm.builtin.<name>", …)`. Operands after a bar are constants of the program:
numbers, strings. They are looked at when it is loaded, not when it runs. `*` is any number of
operands.
"""


def page() -> str:
    """The whole page."""
    count = sum(map(len, SUBJECTS.values()))
    parts = [INTRODUCTION.format(count=count)]
    for subject, builtins in SUBJECTS.items():
        parts.append(
            f"\n## {subject}\n\n| name | operands | what it gives or does |\n|---|---|---|\n"
        )
        parts += [f"| `{b.name}` | {_operands(b)} | {_cell(b.meaning)} |\n" for b in builtins]
    return "".join(parts)


def _operands(builtin: Builtin) -> str:
    values = ", ".join(f"`{name}`" for name in builtin.values)
    constants = ", ".join(f"`{name}`" for name, _ in builtin.constants)
    return f"{values} \\| {constants}".strip() if constants else values


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
