"""The rule book: one ``.egg`` file for each family of rules.

The family is the ruleset is the file's name.  ``README.md`` says what makes a rule admissible.
"""

from pathlib import Path

FACTS = ("dim", "facts")
"""What is deduced of every value; always part of the book."""

FAMILIES = ("canon", "shape", "fma", "idioms", "fusion")
"""The families of rewrites."""


def load(family: str) -> str:
    """The text of the file of `family`, one of `FACTS` or `FAMILIES`."""
    return (Path(__file__).parent / f"{family}.egg").read_text("utf-8")
