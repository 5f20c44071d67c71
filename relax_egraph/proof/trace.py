"""A proof as data: a chain of single rule applications from a program to the optimized one."""

from collections.abc import Mapping
from dataclasses import dataclass

from relax_egraph.ir.expr import Expr
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.proof.term import Term


@dataclass(frozen=True, slots=True)
class Step:
    """One rule applied: wherever the program has `before`, it has `after` then.

    `rule` is as `egraph.report.Report` names it, one direction of a birewrite.
    """

    rule: str
    before: Term
    after: Term


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps from `source` to `result`, one output of a region of `function`.

    `leaves` are what terms of operator ``leaf`` stand for, by key: a `Constant`, or a variable;
    `infos` are what is known of them.
    """

    function: str
    output: str
    source: Term
    result: Term
    steps: tuple[Step, ...]
    leaves: Mapping[int, Expr]
    infos: Mapping[int, TensorStructInfo]
