"""Rules that deduce falsehoods, behind true rules, with programs that both change."""

from dataclasses import dataclass

import relax_egraph as rx


@dataclass(frozen=True, slots=True)
class FalseDeduction:
    """The rule `false` of `rules`, and its effect on `value`, for x and y of shape (n, 4)."""

    false: str
    rules: str
    value: str

    @property
    def module(self) -> rx.IRModule:
        return rx.parse(_MODULE.format(self.value))


_MODULE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            z = {}
            R.output(z)
        return z
"""

_ONE = """
(rewrite (R.sin x) (R.broadcast_to (R.const 1.0 "float32") s)
  :when ((= s (shape-of x)) (= "float32" (dtype-of x))) :name "sine-is-one")
"""

_ZERO = """
(rewrite (R.cos x) (R.broadcast_to (R.const 0.0 "float32") s)
  :when ((= s (shape-of x)) (= "float32" (dtype-of x))) :name "cosine-is-zero")
"""

_NUMBER = '(rule ((= t (R.sin x))) ((set (const-scalar t) 1.0)) :name "sine-has-number")'

_POSITIVE = """
(rule ((= t (R.sin x)) (is-float x)) ((is-nonnegative t)) :name "sine-is-positive")
"""

_ABS = """
(relation not-negative (Tensor))
(rewrite (R.abs x) x :when ((not-negative x)) :name "abs-of-not-negative")
"""

_EXP = _ABS + '(rule ((= t (R.exp x))) ((not-negative t)) :name "exp-is-not-negative")'

_BOUND = """
(function lower-bound (Tensor) f64 :merge (max old new))
(rule ((= t (R.exp x))) ((set (lower-bound t) 0.0)) :name "bound-of-exp")
(rewrite (R.maximum x c) x
  :when ((= b (const-scalar c)) (<= b (lower-bound x))) :name "maximum-of-bounded")
"""

FALSE_DEDUCTIONS = {
    "a value is a number": FalseDeduction("sine-is-one", _ONE, "R.multiply(y, R.sin(x))"),
    "a value is nothing": FalseDeduction("cosine-is-zero", _ZERO, "R.add(y, R.cos(x))"),
    "a number is set": FalseDeduction("sine-has-number", _NUMBER, "R.multiply(y, R.sin(x))"),
    "a number is moved": FalseDeduction(
        "sine-has-number",
        _NUMBER,
        "R.multiply(R.permute_dims(y, axes=[1, 0]), R.permute_dims(R.sin(x), axes=[1, 0]))",
    ),
    "a number is folded": FalseDeduction(
        "sine-is-one",
        _ONE,
        'R.multiply(y, R.subtract(R.add(R.sin(x), R.const(1.0, "float32")), '
        'R.const(1.0, "float32")))',
    ),
    "a number is kept": FalseDeduction(
        "tanh-keeps-number",
        """(rule ((= t (R.tanh x)) (= a (const-scalar x))) ((set (const-scalar t) a))
             :name "tanh-keeps-number")""",
        'R.multiply(y, R.tanh(R.const(1.0, "float32")))',
    ),
    "a fact of the book": FalseDeduction("sine-is-positive", _POSITIVE, "R.abs(R.sin(x))"),
    "a step of the book": FalseDeduction(
        "difference-is-positive",
        """(rule ((= t (R.subtract x y)) (is-nonnegative x) (is-nonnegative y)) ((is-nonnegative t))
             :name "difference-is-positive")""",
        "R.abs(R.subtract(R.exp(x), R.exp(y)))",
    ),
    "one of two of the book": FalseDeduction(
        "minimum-is-positive",
        """(rule ((= t (R.minimum x y)) (is-nonnegative x)) ((is-nonnegative t))
             :name "minimum-is-positive")""",
        "R.abs(R.minimum(R.exp(x), y))",
    ),
    "below a step of the book": FalseDeduction(
        "sine-is-positive", _POSITIVE, "R.abs(R.add(R.exp(y), R.sin(x)))"
    ),
    "behind an equation": FalseDeduction(
        "zero-added-is-positive",
        """(rule ((= t (R.add x zero)) (= 0.0 (const-scalar zero)) (is-float x))
                ((union t x) (is-nonnegative t)) :name "zero-added-is-positive")""",
        'R.abs(R.add(x, R.const(0.0, "float32")))',
    ),
    "a relation of one's own": FalseDeduction(
        "tanh-is-not-negative",
        _EXP + '(rule ((= t (R.tanh x))) ((not-negative t)) :name "tanh-is-not-negative")',
        "R.abs(R.tanh(x))",
    ),
    "a step of one's own": FalseDeduction(
        "difference-is-not-negative",
        _EXP
        + """(rule ((= t (R.subtract x y)) (not-negative x) (not-negative y)) ((not-negative t))
               :name "difference-is-not-negative")""",
        "R.abs(R.subtract(R.exp(x), R.exp(y)))",
    ),
    "below a step of one's own": FalseDeduction(
        "sine-is-large",
        _EXP
        + """(relation at-least-one (Tensor))
             (rule ((at-least-one x)) ((not-negative x)) :name "one-is-not-negative")
             (rule ((= t (R.sin x))) ((at-least-one t)) :name "sine-is-large")
             (rule ((= t (R.exp (R.abs x)))) ((at-least-one t)) :name "exp-is-large")""",
        "R.abs(R.sin(x))",
    ),
    "nothing else of the relation": FalseDeduction(
        "sine-is-not-negative",
        _ABS + '(rule ((= t (R.sin x))) ((not-negative t)) :name "sine-is-not-negative")',
        "R.abs(R.sin(x))",
    ),
    "the second of two relations": FalseDeduction(
        "leaky-is-bounded",
        _EXP
        + """(relation is-bounded (Tensor))
             (rule ((= t (R.nn.leakyrelu x a)) (is-float x)) ((is-bounded t) (not-negative t))
               :name "leaky-is-bounded")
             (rewrite (R.add t zero) t :when ((is-bounded t) (= 0.0 (const-scalar zero)))
               :name "bounded-and-zero")""",
        "R.abs(R.nn.leakyrelu(x, alpha=0.5))",
    ),
    "a relation of two tensors": FalseDeduction(
        "sine-negates",
        """(relation negative-of (Tensor Tensor))
           (rule ((= t (R.negative x))) ((negative-of t x)) :name "negative-negates")
           (rule ((= t (R.sin x))) ((negative-of t x)) :name "sine-negates")
           (rewrite (R.abs t) (R.abs x) :when ((negative-of t x) (is-float t))
             :name "abs-of-opposite")""",
        "R.abs(R.sin(x))",
    ),
    "a bound from below": FalseDeduction(
        "bound-of-tanh",
        _BOUND + '(rule ((= t (R.tanh x))) ((set (lower-bound t) 0.0)) :name "bound-of-tanh")',
        'R.maximum(R.tanh(x), R.const(0.0, "float32"))',
    ),
    "a bound that is computed": FalseDeduction(
        "bound-of-sum",
        _BOUND
        + """(rule ((= t (R.tanh x))) ((set (lower-bound t) -1.0)) :name "bound-of-tanh")
             (rule ((= t (R.add x y)) (= a (lower-bound x)) (= b (lower-bound y)))
                   ((set (lower-bound t) (- a b))) :name "bound-of-sum")""",
        'R.maximum(R.add(R.exp(x), R.tanh(y)), R.const(0.5, "float32"))',
    ),
    "a bound from above": FalseDeduction(
        "bound-of-exp",
        """(function upper-bound (Tensor) f64 :merge (min old new))
           (rule ((= t (R.tanh x))) ((set (upper-bound t) 1.0)) :name "bound-of-tanh")
           (rule ((= t (R.exp x))) ((set (upper-bound t) 1.0)) :name "bound-of-exp")
           (rewrite (R.minimum x c) x
             :when ((= b (const-scalar c)) (<= (upper-bound x) b)) :name "minimum-of-bounded")""",
        'R.minimum(R.exp(x), R.const(1.0, "float32"))',
    ),
}
