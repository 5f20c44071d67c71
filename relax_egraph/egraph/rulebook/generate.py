"""Generated declarations and rules of the book, from the operator table.

The rules of an operator deduce its dtype and shape, whether its result is constant or one known
number, and the equal shapes of elementwise operands; one rule lowers it to a kernel.
"""

from collections.abc import Iterator

from relax_egraph.egraph.functions.builtin import OF_ENGINE
from relax_egraph.egraph.functions.function import Function
from relax_egraph.egraph.functions.shapes import KEEPS_SHAPE, SHAPE_FUNCTIONS
from relax_egraph.egraph.node import CALLS
from relax_egraph.egraph.rulebook.calls import demanded
from relax_egraph.egraph.rulebook.check import options_of
from relax_egraph.egraph.rulebook.forms import Form, Source
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.rule import Entry, Rule, Statement
from relax_egraph.egraph.rulebook.scope import ENGINE_RULESETS
from relax_egraph.egraph.rulebook.traits import NO_DTYPE, Traits
from relax_egraph.egraph.rulebook.vocabulary import (
    function_declaration,
    operators,
    vocabulary_table,
)
from relax_egraph.ir.op import Op
from relax_egraph.ir.operators import by_operators

ORACLE = "relax_egraph.egraph.saturation.dim_oracle"
"""The module of the Python functions in rules: two in ``dim``, and ``holds`` in guards."""

COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "equal", "ewise_fma"})
"""Operators that commute in their first two operands: one kernel serves both orders."""

_SORTS = (
    "(sort Tensor)",
    "(sort Kernel)",
    "(sort Tuple)",
    "(sort Dim)",
    "(sort Prim)",
    "(sort Shape (Vec Dim))",
    "(sort Axes (Vec i64))",
    "(sort Tensors (Vec Tensor))",
    "(sort Floats (Vec f64))",
    "(sort DimAt (UnstableFn (i64) Dim))",
    "(sort AxisAt (UnstableFn (i64) i64))",
    "(sort TextOf (UnstableFn (Dim) String))",
    "(sort Unary (UnstableFn (Tensor) Tensor))",
    "(sort Binary (UnstableFn (Tensor Tensor) Tensor))",
    "(sort Ternary (UnstableFn (Tensor Tensor Tensor) Tensor))",
    "(sort Reduction (UnstableFn (Tensor Axes bool) Tensor))",
)

_APPLICATIONS = (
    "(relation unary (Tensor Unary Tensor))",
    "(relation binary (Tensor Binary Tensor Tensor))",
    "(relation ternary (Tensor Ternary Tensor Tensor Tensor))",
    "(relation reduction (Tensor Reduction Tensor Axes bool))",
    "(relation additive (Tensor Binary Tensor Tensor))",
    "(relation linear-reduction (Tensor Reduction Tensor Axes bool))",
    "(relation extreme-reduction (Tensor Reduction Tensor Axes bool))",
    "(relation folding-reduction (Tensor Reduction Tensor Axes bool))",
    "(relation together (Tensor Tensor Tensor))",
)
"""``(binary t f x y)``: t is f(x, y), element by element; ``(unstable-app f x y)`` applies f.

With these relations one rule covers all elementwise operators without attributes, or all
reductions.  ``(together t x y)``: x and y are neighbouring operands of such a t, in cyclic order.
"""

_KINDS = {
    "additive": ("add", "subtract"),
    "linear-reduction": ("sum", "mean"),
    "extreme-reduction": ("max", "min"),
    "folding-reduction": ("sum", "mean", "max", "min", "prod"),
}
"""Relations for groups of operators that obey the same laws."""

APPLICATIONS = ("unary", "binary", "ternary", "reduction", *_KINDS)
"""The relations that describe a value as an application of a function."""

_REDUCTIONS = frozenset({"sum", "mean", "max", "min", "prod", "variance", "std"})

MOVES = ("broadcast_to", "reshape", "permute_dims", "expand_dims", "squeeze", "strided_slice")
"""Operators that only move elements: if all elements of the operand are equal, they stay so."""

_CONFLICTS = (
    "(relation shape-conflict (Tensor Shape Shape))",
    "(relation dtype-conflict (Tensor String String))",
    "(relation operand-conflict (Tensor String Shape Shape))",
    """(rule ((shape-claim t s) (= u (shape-of t)) (!= s u)) ((shape-conflict t u s))
        :ruleset conflict :name "conflict-of-shapes")""",
    """(rule ((dtype-claim t d) (= e (dtype-of t)) (!= d e)) ((dtype-conflict t e d))
        :ruleset conflict :name "conflict-of-dtypes")""",
)


@by_operators(64)
def generated() -> tuple[Entry, ...]:
    """The generated entries of every book, in the order in which egglog runs them."""
    source = Source("generated", "\n".join(_texts()))
    return tuple(_entry(form, source) for form in read(source))


@by_operators(64)
def generated_rules() -> tuple[Rule, ...]:
    """The rules among the generated entries."""
    return tuple(entry for entry in generated() if isinstance(entry, Rule))


def _entry(form: Form, source: Source) -> Entry:
    if form.head != "rule":
        return Statement(form)
    options = options_of(form, source)
    assert options.name
    assert options.ruleset
    name, ruleset = options.name.text.strip('"'), options.ruleset.text
    return Rule(name, ruleset, options.form)


def _texts() -> tuple[str, ...]:
    declarations = [d.text for d in vocabulary_table()]
    declarations += [demanded(function) for function in OF_ENGINE]
    rulesets = [f"(ruleset {name})" for name in (*ENGINE_RULESETS, "lower")]
    oracle = (
        *_python("dim-oracle", "canonical"),
        *_python("dim-is-number", "is_number"),
        *_python("dim-judge", "holds"),
    )
    constants = (
        "(relation static-prefix (Shape i64))",
        "(relation const-prefix (Tensors i64))",
        _rule(
            "const-walk",
            "(const-prefix ts n) (< n (vec-length ts)) (= x (vec-get ts n)) (is-const x)",
            "(const-prefix ts (+ n 1))",
            "dim",
        ),
        _rule(
            "static-walk",
            "(static-prefix s n) (< n (vec-length s)) (is-static (vec-get s n))",
            "(static-prefix s (+ n 1))",
            "dim",
        ),
        _rule("const-none", "(= t (R.none))", "(is-const t)", "facts"),
        _rule("const-varies-not", "(is-const t)", "(set (varies t) 0)", "facts"),
    )
    laws = [form for traits in operators().values() for form in _laws(traits)]
    laws += [law for call in CALLS for law in _of_call(call)]
    return (
        *(*_SORTS, *declarations, *rulesets, *oracle, *constants, *_numbers_of_elements()),
        *(*_APPLICATIONS, *_CONFLICTS, *laws),
    )


def _numbers_of_elements() -> Iterator[str]:
    """Rules that compute the product of all dimensions of each shape.

    Every shape needs its product, and most iterations add shapes; an engine function, which is
    computed between iterations, would delay each of them.
    """
    yield "(relation factors (Shape i64 String))"
    yield "(relation number-of-elements (Shape Dim))"
    yield _rule("numel-of-no-axis", "(= s (shape-of t))", '(factors s 0 "1")', "facts")
    factor = "(factors s i text) (< i (vec-length s)) (= d (dim-text (vec-get s i)))"
    product = '(factors s (+ i 1) (+ text " * (" d ")"))'
    yield _rule("numel-walk", factor, product, "dim")
    canonical = "(py-call (dim-oracle) (py-from-string text))"
    every = f"(factors s i text) (= i (vec-length s)) (= n (py-to-string {canonical}))"
    yield _rule("numel-of-shape", every, "(number-of-elements s (DimSym n))", "dim")
    known = "(= s (shape-of t)) (number-of-elements s n)"
    yield _rule("numel-of-tensor", known, "(set (numel-of t) n)", "facts")


def _python(name: str, function: str) -> tuple[str, str]:
    """The declaration of a Python function that rules call as ``(py-call (name) …)``."""
    imported = f"__import__('{ORACLE}', fromlist=['{function}']).{function}"
    return (
        f"(function {name} () PyObject :no-merge)",
        f'(set ({name}) (py-eval "{imported}" (py-dict) (py-dict)))',
    )


def _laws(traits: Traits) -> Iterator[str]:
    op = traits.op
    variables = [f"a{k}" for k in range(len(op.operands) + len(op.attrs))]
    node = f"(= t (R.{op.name} {' '.join(variables)}))"
    sorts = [o.kind for o in op.operands]
    tensors = [v for v, kind in zip(variables, sorts, strict=False) if kind == "tensor"]
    yield from _dtype(traits, node, variables)
    yield from _constness(traits, node, variables)
    if op.elementwise:
        yield from _one_shape(op.name, node, tensors)
    if traits.shape:
        place = [o.name for o in op.operands].index(traits.shape)
        yield _rule(f"shape-{op.name}", node, f"(shape-claim t {variables[place]})", "facts")
    if traits.order:
        axes = variables[1 + [a.name for a in op.attrs].index(traits.order)]
        shape = f'(unstable-vec-map (unstable-fn "vec-get" s) {axes})'
        facts = f"{node} (= s (shape-of {variables[0]}))"
        yield _rule(f"shape-{op.name}", facts, f"(shape-claim t {shape})", "facts")
    if op.name in KEEPS_SHAPE:
        known = f"{node} (= s (shape-of {variables[0]}))"
        yield _rule(f"shape-{op.name}", known, "(shape-claim t s)", "facts")
    if op.name in SHAPE_FUNCTIONS:
        yield from _shape(SHAPE_FUNCTIONS[op.name], op.name, node, variables, tensors)
    if kind := _application(op):
        applied = f'({kind} t (unstable-fn "R.{op.name}") {" ".join(variables)})'
        varies = ["(set (varies t) 1)"] if op.elementwise else []
        others = zip(tensors, (*tensors[1:], *tensors[:1]), strict=True)
        beside = [f"(together t {x} {y})" for x, y in others if x != y]
        kinds = [applied.replace(kind, k, 1) for k, names in _KINDS.items() if op.name in names]
        facts = " ".join((applied, *kinds, *varies, *beside))
        yield _rule(f"{kind}-{op.name}", node, facts, "facts")
    if op.name in MOVES:
        value = f"{node} (= c (const-scalar {variables[0]}))"
        yield _rule(f"value-{op.name}", value, "(set (const-scalar t) c)", "facts")
    if traits.in_kernel:
        ordered = _ordered(op.name, variables)
        loads = [
            f"(K.load {a})" if v in tensors else a for v, a in zip(variables, ordered, strict=True)
        ]
        kernel = f"(K.store (K.{op.name} {' '.join(loads)}))"
        known = " ".join(f"(= s{v} (shape-of {v}))" for v in ("t", *tensors))
        yield _rule(
            f"lower-{op.name}", f"{node} {known} (= d (dtype-of t))", f"(union t {kernel})", "lower"
        )


def _of_call(call: str) -> Iterator[str]:
    """The rules for the shape and dtype of a call, which are operands of its node."""
    node = f"(= t (R.{call} name operands s d))"
    yield _rule(f"result-{call}", node, "(shape-claim t s) (dtype-claim t d)", "facts")


def _application(op: Op) -> str:
    """The relation for applications of `op`; empty if there is none."""
    if op.name in _REDUCTIONS:
        return "reduction"
    plain = op.elementwise and not op.attrs
    return ("unary", "binary", "ternary")[len(op.operands) - 1] if plain else ""


def _ordered(name: str, variables: list[str]) -> list[str]:
    """The arguments of the kernel's operator, in canonical order if it is commutative."""
    if name not in COMMUTATIVE:
        return variables
    x, y, *rest = variables
    return [f"(ordering-min {x} {y})", f"(ordering-max {x} {y})", *rest]


def _dtype(traits: Traits, node: str, variables: list[str]) -> Iterator[str]:
    """The rule for the dtype of the result: that of an operand, an attribute, or a fixed one."""
    op, source = traits.op, traits.dtype
    names = [p.name for p in (*op.operands, *op.attrs)]
    if source.startswith('"'):
        yield _rule(f"dtype-{op.name}", node, f"(dtype-claim t {source})", "facts")
    elif source in {a.name for a in op.attrs}:
        chosen = variables[names.index(source)]
        explicit = " ".join(f'(!= {chosen} "{nothing}")' for nothing in NO_DTYPE)
        yield _rule(f"dtype-{op.name}", f"{node} {explicit}", f"(dtype-claim t {chosen})", "facts")
    elif source:
        known = f"(= d (dtype-of {variables[names.index(source)]}))"
        yield _rule(f"dtype-{op.name}", f"{node} {known}", "(dtype-claim t d)", "facts")


def _constness(traits: Traits, node: str, variables: list[str]) -> Iterator[str]:
    """The rules for constant results: all operands are constant, and shapes have no symbols.

    A result of shapes alone does not count: it is cheaper to compute at run time than to store.
    """
    op, name = traits.op, traits.op.name
    of_kind = {
        kind: [v for v, o in zip(variables, op.operands, strict=False) if o.kind == kind]
        for kind in ("tensor", "tensors", "shape", "prim")
    }
    tensors, lists, shapes = of_kind["tensor"], of_kind["tensors"], of_kind["shape"]
    if of_kind["prim"] or not (tensors or lists):
        return
    if traits.makes_tuple:
        node = f"(= t (R.tuple_get {node.removeprefix('(= t ').removesuffix(')')} i))"
    premises = [node, *(f"(is-const {v})" for v in tensors)]
    starts = [f"(static-prefix {s} 0)" for s in shapes] + [f"(const-prefix {v} 0)" for v in lists]
    if starts:
        yield _rule(f"const-{name}-walk", " ".join(premises), " ".join(starts), "facts")
    premises += [f"(static-prefix {s} n{s}) (= n{s} (vec-length {s}))" for s in shapes]
    premises += [f"(const-prefix {v} n{v}) (= n{v} (vec-length {v}))" for v in lists]
    yield _rule(f"const-{name}", " ".join(premises), "(is-const t)", "facts")


def _one_shape(name: str, node: str, tensors: list[str]) -> Iterator[str]:
    """The rules of elementwise operators: operands and result have the same shape."""
    same = " ".join(f"(= s (shape-of {v}))" for v in tensors)
    yield _rule(f"shape-{name}", f"{node} {same}", "(shape-claim t s)", "facts")
    for other in tensors[1:]:
        differ = f"(= s (shape-of {tensors[0]})) (= u (shape-of {other})) (!= s u)"
        conflict = f'(operand-conflict t "R.{name}" s u)'
        yield _rule(f"conflict-{name}-{other}", f"{node} {differ}", conflict, "conflict")


def _shape(
    function: Function, name: str, node: str, variables: list[str], tensors: list[str]
) -> Iterator[str]:
    """The rule for the shape of the result, computed by the operator's struct-info rule."""
    shapes = [f"s{v}" if v in tensors else v for v in variables]
    known = " ".join(f"(= s{v} (shape-of {v}))" for v in tensors)
    call = f"(= s ({function.name} {' '.join(shapes)}))"
    yield from (function_declaration(function).text, demanded(function))
    yield _rule(f"shape-{name}", f"{node} {known} {call}", "(shape-claim t s)", "facts")


def _rule(name: str, body: str, head: str, ruleset: str) -> str:
    return f'(rule ({body}) ({head}) :ruleset {ruleset} :name "{name}")'
