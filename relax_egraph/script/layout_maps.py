"""Maps of indices, as those of ``R.layout_transform``: splits, permutations and fusions of axes.

``lambda n, c: (n, c // 4, c % 4)`` splits the second axis.  Each result is read as digits of the
axes, from the most significant one; a digit of `axis` is ``index // low % (high // low)``.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from relax_egraph.errors import ScriptError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.script.source import Source


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the index along `axis`; the most significant one has no `high`."""

    axis: int
    low: int = 1
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """Steps that have the effect of a map: pad, reshape, permute the axes, reshape."""

    padded: Shape
    split: Shape
    axes: tuple[int, ...]
    shape: Shape


def rearrangement(source: Source, node: ast.expr, extents: Sequence[Dim]) -> Rearrangement:
    """The steps of the map `node` of a tensor; raises `ScriptError` if it has others."""
    if not isinstance(node, ast.Lambda) or len(node.args.args) != len(extents):
        message = f"`{ast.unparse(node)}` is no map of {len(extents)} indices"
        raise source.error(node, message, "write lambda i, j: (j, i // 4, i % 4)")
    body = node.body
    results = body.elts if isinstance(body, ast.Tuple | ast.List) else [body]
    names = {arg.arg: Digit(axis) for axis, arg in enumerate(node.args.args)}
    sums = [_sum(source, result, names) for result in results]
    cuts = _cuts(source, node, [d for terms in sums for d, _ in terms], len(extents))
    padded = [_rounded_up(e, cut[-1]) for e, cut in zip(extents, cuts, strict=True)]

    def size(digit: Digit) -> Dim:
        return dims.floordiv(digit.high or padded[digit.axis], digit.low)

    parts = [
        Digit(axis, low, high)
        for axis, cut in enumerate(cuts)
        for low, high in reversed([*zip(cut, [*cut[1:], None], strict=True)])
    ]
    groups: list[list[Digit]] = []
    for terms in sums:
        ordered = sorted(terms, key=lambda term: (term[1], _order(size(term[0]))), reverse=True)
        weights = [weight for _, weight in ordered]
        sizes = [size(digit) for digit, _ in ordered]
        if weights != [dims.product(sizes[k + 1 :]) for k in range(len(sizes))]:
            raise _no_rearrangement(source, node)
        groups.append([p for digit, _ in ordered for p in parts if _within(p, digit)])
    order = [parts.index(p) for group in groups for p in group]
    single = [k for k, part in enumerate(parts) if size(part) == 1 and k not in order]
    order = [*single, *order]  # ``i % 16`` of at most 16 elements drops nothing
    if sorted(order) != [*range(len(parts))]:
        raise _no_rearrangement(source, node)
    shape = tuple(dims.product(map(size, group)) for group in groups)
    return Rearrangement(tuple(padded), tuple(map(size, parts)), tuple(order), shape)


def _rounded_up(extent: Dim, step: int) -> Dim:
    return dims.mul(dims.floordiv(dims.add(extent, step - 1), step), step)


def _order(size: Dim) -> int:
    """The rank of a size among digits of equal weight: all but one of them have one element."""
    return size if isinstance(size, int) else 2


def _no_rearrangement(source: Source, node: ast.expr) -> ScriptError:
    message = f"the map `{ast.unparse(node)}` is no rearrangement: it repeats or drops elements"
    return source.error(node, message)


def _within(part: Digit, whole: Digit) -> bool:
    if part.axis != whole.axis or part.low < whole.low:
        return False
    return whole.high is None or (part.high is not None and part.high <= whole.high)


def _cuts(source: Source, node: ast.expr, digits: Sequence[Digit], rank: int) -> list[list[int]]:
    """The places at which each axis is split: 1, and multiples, each of the one before."""
    cuts = [{1} for _ in range(rank)]
    for digit in digits:
        cuts[digit.axis] |= {digit.low, digit.high or 1}
    ordered = [sorted(cut) for cut in cuts]
    for cut in ordered:
        if any(high % low for low, high in pairwise(cut)):
            message = f"the map `{ast.unparse(node)}` splits an axis at {cut}, needs multiples"
            raise source.error(node, message)
    return ordered


def _sum(source: Source, node: ast.expr, names: Mapping[str, Digit]) -> list[tuple[Digit, int]]:
    """The sum of `node`: digits with their weights."""
    match node:
        case ast.Name(id=name) if name in names:
            return [(names[name], 1)]
        case ast.Constant(value=0):
            return []
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_sum(source, left, names), *_sum(source, right, names)]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            by = _number(source, right)
            return [(digit, weight * by) for digit, weight in _sum(source, left, names)]
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
            terms, by = _sum(source, left, names), _number(source, right)
            if [weight for _, weight in terms] == [1]:
                ((digit, _),) = terms
                within = digit.low * by
                if isinstance(op, ast.FloorDiv):
                    return [(Digit(digit.axis, within, digit.high), 1)]
                return [(Digit(digit.axis, digit.low, within), 1)]
        case ast.Call(args=[inner], keywords=[]):
            return _sum(source, inner, names)
        case _:
            pass
    message = f"`{ast.unparse(node)}` is no part of a map of indices"
    raise source.error(node, message, "a map has //, %, and sums as i * 4 + j")


def _number(source: Source, node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)) if number > 0:
            return number
        case ast.Call(args=[inner], keywords=[]):
            return _number(source, inner)
        case _:
            raise source.error(node, f"`{ast.unparse(node)}` is no positive number")
