"""The check of rules finds what is wrong with a rule, and passes what is right."""

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.verdict import Verdict

WRONG = {
    "transpose-dropped": """; float: exact
        (rewrite (R.permute_dims x p) x :when ((= 2 (vec-length p))))""",
    "permutations-in-the-wrong-order": """; float: exact
        (rewrite (R.permute_dims (R.permute_dims x p) q)
                 (R.permute_dims x (unstable-vec-map (unstable-fn "vec-get" q) p)))""",
    "softmax-over-another-axis": """; float: reassociates
        (rewrite (R.divide (R.exp x) (R.broadcast_to (R.sum (R.exp x) axes true) s))
                 (R.nn.softmax x 0) :when ((= 1 (vec-length axes))))""",
    "keepdims-forgotten": """; float: exact
        (rewrite (R.sum x axes true) (R.sum x axes false))""",
    "broadcast-forgotten": """; float: exact
        (rewrite (R.nn.relu x) (R.maximum x (R.const 0.0 "float32")))""",
    "difference-of-itself": """; float: reassociates
        (rewrite (R.subtract x x) (R.broadcast_to (R.const 0.0 d) s)
          :when ((= s (shape-of x)) (= d (dtype-of x))))""",
    "quotient-of-itself": """; float: reassociates
        (rewrite (R.divide x x) (R.broadcast_to (R.const 1.0 d) s)
          :when ((= s (shape-of x)) (= d (dtype-of x))))""",
    "product-with-zero": """; float: exact
        (rewrite (R.multiply x zero) zero :when ((= 0.0 (const-scalar zero))))""",
    "integers-divided-and-multiplied": """; float: reassociates
        (rewrite (R.multiply (R.floor_divide x y) y) x)""",
    "integers-of-a-wrong-sign": """; float: exact
        (rewrite (R.abs x) x :when ((!= "float32" (dtype-of x)) (!= "float64" (dtype-of x))))""",
    "logarithm-of-a-power": """; float: fast
        (rewrite (R.exp (R.log x)) x)""",
    "reciprocal-as-exact": """; float: exact
        (rewrite (R.divide x y) (R.multiply x (R.broadcast_to (R.const (/ 1.0 c) d) s))
          :when ((= c (const-scalar y)) (!= c 0.0) (is-float x) (= s (shape-of x))
                 (= d (dtype-of x))))""",
    "sums-associate-exactly": """; float: exact
        (rewrite (R.add (R.add x y) z) (R.add x (R.add y z)))""",
    "constant-of-too-few-digits": """; float: fast
        (rewrite (R.nn.gelu_tanh x)
          (R.multiply (R.multiply x (R.broadcast_to (R.const 0.5 d) s))
            (R.add (R.broadcast_to (R.const 1.0 d) s) (R.tanh
              (R.multiply (R.broadcast_to (R.const 0.798 d) s)
                (R.add x (R.multiply (R.broadcast_to (R.const 0.044715 d) s)
                                     (R.multiply x (R.multiply x x)))))))
          ) :when ((= s (shape-of x)) (= d (dtype-of x))))""",
    "mean-of-means": """; float: reassociates
        (rewrite (R.mean (R.concat ts axis) (vec-of axis) true)
                 (R.multiply (R.add (R.mean a (vec-of axis) true) (R.mean b (vec-of axis) true))
                             (R.broadcast_to (R.const 0.5 d) s))
          :when ((= 2 (vec-length ts)) (= a (vec-get ts 0)) (= b (vec-get ts 1)) (is-float a)
                 (= d (dtype-of a)) (= s (shape-of (R.mean a (vec-of axis) true)))))""",
    "squares-of-halves": """; float: reassociates
        (rule ((= t (R.nn.rms_norm x w axes eps)) (= 1 (vec-length axes)) (= s (shape-of x))
               (= axes (vec-of (- (vec-length s) 1))) (= d (dtype-of x)))
              ((let squares (R.broadcast_to (R.mean (R.multiply x x) axes true) s))
               (let root (R.sqrt (R.add squares (R.broadcast_to (R.const eps d) s))))
               (union t (R.multiply (R.divide x root) (R.broadcast_to w s)))))""",
    "variance-of-halves": """; float: reassociates
        (rewrite (R.std x axes keep) (R.sqrt (R.variance x axes keep)))""",
    "sum-of-many-halves": """; float: reassociates
        (rule ((= t (R.mean x (vec-of 0) false)) (= s (shape-of x)) (= 1 (vec-length s))
               (= d (dtype-of x)))
              ((let count (R.sum (R.broadcast_to (R.const 1.0 d) s) (vec-of 0) false))
               (union t (R.divide (R.sum x (vec-of 0) false) count))))""",
    "narrowing-cast-dropped": """; float: exact
        (rewrite (R.astype (R.astype x "float32") "float64") x
          :when ((= "float64" (dtype-of x))))""",
    "premise-that-is-a-term": """; float: exact
        (rule ((R.maximum x y) (= z (R.nn.relu x))) ((union z x)))""",
    "symmetric-matmul": """; float: reassociates
        (rewrite (R.matmul x y) (R.matmul y x)
          :when ((= 2 (rank-of x)) (= (shape-of x) (shape-of y))))""",
    "maximum-of-nothing": """; float: exact
        (rewrite (R.nn.relu (R.max x axes keep)) (R.max (R.nn.relu x) axes keep))""",
    "part-of-another-number": """; float: exact
        (rewrite (R.tuple_get (R.split x cuts axis) 1) (R.tuple_get (R.split x cuts axis) 0)
          :when ((= s (shape-of (R.tuple_get (R.split x cuts axis) 0)))
                 (= s (shape-of (R.tuple_get (R.split x cuts axis) 1)))))""",
    "layout-forgotten": """; float: reassociates
        (rewrite (R.nn.conv2d x w strides padding dilation groups "NHWC" k out dtype)
                 (R.nn.conv2d x w strides padding dilation groups "NCHW" k out dtype))""",
}

RIGHT = {
    "double-negation": """; float: exact
        (rewrite (R.negative (R.negative x)) x)""",
    "factored": """; float: reassociates
        (rewrite (R.add (R.multiply x y) (R.multiply x z)) (R.multiply x (R.add y z)))""",
    "sum-of-permuted": """; float: reassociates
        (rewrite (R.sum (R.permute_dims x p) axes false) (R.sum x every false)
          :when ((= (vec-length axes) (rank-of x)) (= every (vec-range (vec-length axes)))))""",
    "matmul-of-transposes": """; float: reassociates
        (rewrite (R.matmul (R.permute_dims x (vec-of 1 0)) (R.permute_dims y (vec-of 1 0)))
                 (R.permute_dims (R.matmul y x) (vec-of 1 0)))""",
    "split-and-joined": """; float: exact
        (rule ((= c (R.concat ts k)) (= 2 (vec-length ts)) (= s (R.split x cuts k))
               (= 1 (vec-length cuts)) (= (vec-get ts 0) (R.tuple_get s 0))
               (= (vec-get ts 1) (R.tuple_get s 1)))
              ((union c x)))""",
    "batch-norm-part": """; float: exact
        (rewrite (R.tuple_get (R.nn.batch_norm x g b m v axis eps c s mom false) 1) m)""",
    "slice-within": """; float: exact
        (rule ((= t (R.strided_slice x begin end axes (vec-of 1) true))
               (= n (vec-get (shape-of x) (vec-get axes 0)))
               (= first (position-on (vec-get begin 0) n))
               (= last (position-on (vec-get end 0) n)) (dim-ge last first))
              ((union t (R.strided_slice x (vec-of first) (vec-of last) axes (vec-of 1) true))))""",
}

FEW = 6
"""Instances of each rule."""

MANY = {"reciprocal-as-exact": 20, "slice-within": 60}
"""Rules that are wrong on few instances, as a power of two has an exact reciprocal, or would be if
slices from far beyond the end promised to be within."""


def verdict_on(text: str, name: str) -> Verdict:
    rule = f'{text.rstrip()[:-1]} :name "{name}")'
    book = RuleBook.default([rule], families=(), fast_math=True)
    (verdict,) = check_rules(book, trials=MANY.get(name, FEW))
    return verdict


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_found(name: str) -> None:
    verdict = verdict_on(WRONG[name], name)

    assert verdict.fired
    assert not verdict.sound
    assert verdict.counterexample is not None


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rule_passes(name: str) -> None:
    verdict = verdict_on(RIGHT[name], name)

    assert verdict.sound, str(verdict)
    assert verdict.fired >= FEW
