"""Writes the table of the ATen overloads that have a converter; it needs the package torch.

python -m docs.torch_operators
"""

from importlib import import_module
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "torch_operators.md"


def table() -> str:
    """The table: overloads by what they become, in the words of their converters."""
    import_module("relax_egraph.frontends.torch.operators")
    registry: Any = import_module("relax_egraph.frontends.torch.registry")
    rows: dict[Any, list[str]] = {}
    for name, converter in sorted(registry.converted().items(), key=lambda pair: pair[0]):
        rows.setdefault(converter, []).append(name)
    count = sum(map(len, rows.values()))
    lines = [
        "# Operators of torch",
        "",
        f"{count} overloads have a converter; torch decomposes the others into these where it can.",
        "The file is written by `python -m docs.torch_operators`.",
        "",
        "| overloads | what they become |",
        "|---|---|",
    ]
    for converter, names in sorted(rows.items(), key=lambda row: row[1][0]):
        said = " ".join((converter.__doc__ or "").split("\n\n")[0].split())
        text = ", ".join(f"`{name.removesuffix('.default')}`" for name in names)
        lines.append(f"| {text} | {said.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(table(), "utf-8")
