"""Writes the table of the ATen overloads that have a converter; it needs the package torch.

python -m docs.torch_operators
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "torch_operators.md"


def table() -> str:
    """The table: overloads by what they become, in the words of their converters."""
    import_module("relax_egraph.frontends.torch.operators")
    registry: Any = import_module("relax_egraph.frontends.torch.registry")
    converted, of_complex = registry.converted(), registry.complex_converted()
    lines = [
        "# Operators of torch",
        "",
        f"{len(converted)} overloads have a converter; torch decomposes others into these where it",
        f"can. {len(of_complex)} have one for complex numbers, which are pairs of real tensors.",
        "The file is written by `python -m docs.torch_operators`.",
        "",
        *_rows(converted),
        "",
        "## Complex numbers",
        "",
        *_rows(of_complex),
    ]
    return "\n".join(lines) + "\n"


def _rows(converted: Mapping[str, Any]) -> Iterator[str]:
    """A table of converters, each with its overloads."""
    yield from ("| overloads | what they become |", "|---|---|")
    rows: dict[Any, list[str]] = {}
    for name, converter in sorted(converted.items()):
        rows.setdefault(converter, []).append(name)
    for converter, names in sorted(rows.items(), key=lambda row: row[1][0]):
        said = " ".join((converter.__doc__ or "").split("\n\n")[0].split())
        text = ", ".join(f"`{name.removesuffix('.default')}`" for name in names)
        yield f"| {text} | {said.replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    FILE.write_text(table(), "utf-8")
