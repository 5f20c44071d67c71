"""What the answers of tasks on models depend on, for their journal."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from relax_egraph.base.run_input import VERSIONS
from relax_egraph.base.sources import digest_of_code
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.ir.called import operators_for
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import constants_of
from relax_egraph.optimize.cache.naming import Nameless, name_of
from relax_egraph.optimize.session import Session

_LIBRARIES = ("egglog", "highspy", "numpy", "sympy")


def digest_of_module(module: IRModule) -> str:
    """A digest of the program with the values of its constants: the same on every machine."""
    hashed = sha256(module.script().encode())
    for _, function in module.relax_functions():
        for constant in constants_of(function):
            hashed.update(f"{constant.data.dtype} {constant.data.shape}".encode())
            hashed.update(constant.data.tobytes())
    return hashed.hexdigest()[:32]


def parts_of(session: Session) -> Mapping[str, Any]:
    """What the answers of a `session` depend on besides the model, as parts of a `RunInput`.

    Raises ``ValueError`` if an option has no text that identifies it.
    """
    rules = session.read_rules().files
    names = sorted(f.name for f in fields(session) if f.name != "rules")
    try:
        options = name_of(*((name, getattr(session, name)) for name in names))
    except Nameless as problem:
        raise ValueError(f"no task can have an option of type {problem}: it has no text") from None
    versions = [digest_of_code(), *(f"{name} {version(name)}" for name in _LIBRARIES)]
    return {VERSIONS: versions, "rules": [list(file) for file in rules], "options": options}


def require_plain(modules: Sequence[IRModule], session: Session) -> None:
    """Raise ``ValueError`` for what has Python code: other processes lack it, and it may change."""
    book = RuleBook.default([session.read_rules()], session.without, fast_math=True, bounded=True)
    if any(source.functions for source in book.user):
        raise ValueError(
            "rules with Python functions have no tasks: their code may change, and other machines "
            "lack it; leave out --ray and --journal"
        )
    if book.operators.own or any(operators_for(module).own for module in modules):
        raise ValueError(
            "operators of your own have no tasks: their code may change, and other machines lack "
            "it; leave out --ray and --journal"
        )
