"""``match`` on a tagged value: read as conditionals.

::

    match xs:
        case R.tagged(1, head, rest):
            total = cls.add(head, rest)
        case _:
            total = zero

The first case becomes ``if R.has_tag(xs, 1):``, its names ``R.field_of(xs, 0)`` and
``R.field_of(xs, 1)``.
"""

import ast
from collections.abc import Sequence

from relax_egraph.script.source import Source, dotted


def as_conditional(source: Source, node: ast.Match) -> ast.stmt:
    """The conditional that `node` stands for; raises `ScriptError` with what a case may be."""
    if not isinstance(node.subject, ast.Name):
        message = f"`match {ast.unparse(node.subject)}` is on no variable"
        raise source.error(node.subject, message, "bind the value to a variable before it")
    *cases, last = node.cases
    for case in node.cases:
        if case.guard is not None:
            raise source.error(case.guard, "a case with a guard", "write `if` inside of the case")
    if not cases or not _takes_all(last.pattern):
        raise source.error(
            last.pattern,
            "the last case takes only some values",
            "end with `case _:`: the constructors of a value are not declared",
        )
    otherwise = last.body
    for case in reversed(cases):
        otherwise = [_conditional(source, node.subject, case, otherwise)]
    return otherwise[0]


def _conditional(
    source: Source, subject: ast.Name, case: ast.match_case, otherwise: Sequence[ast.stmt]
) -> ast.stmt:
    tag, names = _constructor(source, case.pattern)
    fields = [
        ast.Assign([ast.Name(name, ast.Store())], _call("field_of", subject, index))
        for index, name in enumerate(names)
        if name is not None
    ]
    test = _call("has_tag", subject, tag)
    for read in (test, *fields):
        for inner in ast.walk(read):
            ast.copy_location(inner, case.pattern)
    return ast.copy_location(ast.If(test, [*fields, *case.body], list(otherwise)), case.pattern)


def _constructor(source: Source, pattern: ast.pattern) -> tuple[int, list[str | None]]:
    """The tag, and the name of each field; ``None`` for ``_``."""
    match pattern:
        case ast.MatchClass(
            cls=cls,
            patterns=[ast.MatchValue(value=ast.Constant(value=int(tag))), *fields],
            kwd_attrs=[],
        ) if dotted(cls) == "R.tagged" and all(map(_is_name, fields)):
            return tag, [f.name for f in fields if isinstance(f, ast.MatchAs)]
        case _:
            message = f"`case {ast.unparse(pattern)}` is no constructor with names for its fields"
            raise source.error(pattern, message, "write `case R.tagged(1, head, rest):`")


def _is_name(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _takes_all(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None


def _call(operator: str, subject: ast.Name, number: int) -> ast.Call:
    callee = ast.Attribute(ast.Name("R", ast.Load()), operator, ast.Load())
    return ast.Call(callee, [ast.Name(subject.id, ast.Load()), ast.Constant(number)], [])
