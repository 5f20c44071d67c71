"""Sums over parts are joined where they are one sum, and nowhere else."""

import pytest

import relax_egraph as rx

SUM = """
; Σ over all k, as a sum over parts
; float: reassociates
(rewrite (R.matmul x w) (R.dist.all_reduce (R.matmul (R.dist.shard x 2 {x}) (R.dist.shard w 2 {w})))
  :when ((= 2 (rank-of x)) (= 2 (rank-of w)) (is-float x) (= s (shape-of x)) (= t (shape-of w))
         (dim-divides (DimSym "2") (vec-get s 0)) (dim-divides (DimSym "2") (vec-get s 1))
         (dim-divides (DimSym "2") (vec-get t 1)){more})
  :name "sum")
"""
SQUARE = " (= (vec-get s 0) (vec-get s 1)) (= (vec-get t 0) (vec-get t 1))"


def test_a_sum_over_parts_is_proven() -> None:
    (verdict,) = rx.rules.prove(SUM.format(x=1, w=0, more=""))

    assert verdict.status == "proven", verdict.reason


@pytest.mark.parametrize(("x", "w"), [(0, 0), (1, 1), (0, 1)])
def test_a_sum_over_parts_of_other_axes_is_not(x: int, w: int) -> None:
    (verdict,) = rx.rules.prove(SUM.format(x=x, w=w, more=SQUARE))

    assert verdict.status in ("refuted", "not proven")
