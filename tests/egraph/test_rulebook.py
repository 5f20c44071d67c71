"""Laws that hold for every rule file, and for the facts of every operator."""

import re
from pathlib import Path

import pytest

from relax_egraph import rules
from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.engine import RuleBook, saturate
from relax_egraph.egraph.functions.shapes import KEEPS_SHAPE
from relax_egraph.egraph.node import Node, leaf_node
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.rulebook.reading import check_book
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.vocabulary import operators, vocabulary_table
from relax_egraph.egraph.saturation.infer import asked
from relax_egraph.egraph.view import EClass, View
from relax_egraph.errors import RuleError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)
from relax_egraph.verify.file_tests.equal_values import Unsound, check_sound

CASES = Path(__file__).parents[1] / "rules"
EVERY = (*rules.FACTS, *rules.FAMILIES)
N = dims.symbol("n")


def rules_of(family: str) -> list[Rule]:
    book = RuleBook.default(fast_math=True, bounded=True)
    return [rule for rule in book.rules if rule.span.file == f"rules/{family}.egg"]


def test_the_families_are_the_files() -> None:
    files = {path.stem for path in Path(rules.__file__).parent.glob("*.egg")}

    assert set(EVERY) == files == {path.stem for path in CASES.glob("*.egg")}


@pytest.mark.parametrize("family", EVERY)
def test_every_rule_is_named_and_stated(family: str) -> None:
    for rule in rules_of(family):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name), rule.span
        assert rule.law, f"no law above {rule.name}"
        assert rule.float_class != "unstated", f"no float class above {rule.name}"
        assert rule.ruleset == family


@pytest.mark.parametrize("family", EVERY)
def test_every_rule_is_seen_to_fire(family: str) -> None:
    cases = (CASES / f"{family}.egg").read_text("utf-8")
    fires = {name for line in re.findall(r"(?m)^; FIRES: (.+)$", cases) for name in line.split()}

    assert {rule.name for rule in rules_of(family)} == fires


@pytest.mark.parametrize("family", EVERY)
def test_every_family_has_a_negative_case(family: str) -> None:
    assert "(fail (check" in (CASES / f"{family}.egg").read_text("utf-8")


def test_names_are_unique() -> None:
    names = [rule.name for rule in RuleBook.default(fast_math=True, bounded=True).rules]

    assert len(names) == len(set(names))


def test_the_book_is_right_as_it_is_written() -> None:
    check_book()


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ('(rewrite (R.exp x) (DimSym "n") {})', "20: the two sides differ in sort"),
        ("(rewrite (R.exq x) x {})", "10: unknown operator R.exq"),
        ("(rewrite (R.sum x axis) x {})", "10: R.sum takes 3 arguments, got 2"),
        (
            "(rewrite (R.reshape x (vec-of 2)) x {})",
            "23: this is of sort Axes",
        ),
        ("(rewrite (R.exp x) y {})", "20: y is unbound"),
        ("(rewrite (R.exp x) x :when ((is-cnst x)) {})", "29: unknown operator is-cnst"),
    ],
)
def test_a_fault_in_the_book_is_found(
    fault: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = rules.text("fma")
    planted = written + fault.format(':ruleset fma :name "planted"')
    texts = {"fma": planted, **dict.fromkeys(rules.FACTS, "")}
    monkeypatch.setattr(rules, "text", texts.__getitem__)
    line = planted.count("\n") + 1

    with pytest.raises(RuleError, match=re.escape(f"rules/fma.egg:{line}:{place}")):
        check_book(("fma",))


def test_the_numeric_check_finds_an_unsound_equation() -> None:
    egraph = EGraph()
    for text in RuleBook.default(fast_math=True, bounded=True).program_of_families.texts:
        run_text(egraph, text)
    run_text(egraph, "(union (R.subtract (Leaf 0) (Leaf 1)) (R.subtract (Leaf 1) (Leaf 0)))")

    with pytest.raises(Unsound, match="subtract"):
        check_sound(Tables(egraph), seed=0)


def test_every_operator_of_tensors_is_in_the_vocabulary() -> None:
    names = {d.name for d in vocabulary_table()}

    assert {"R.add", "R.nn.softmax", "R.unique", "K.add", "K.load", "K.store"} <= names
    assert not names & {"R.shape_of", "R.call_packed", "K.unique"}
    assert {f"R.{name}" for name in operators()} <= names


def test_the_vocabulary_says_how_an_operator_is_written() -> None:
    (reduction,) = [d for d in vocabulary_table() if d.name == "R.sum"]

    assert reduction.usage == "(R.sum x:Tensor axis:Axes keepdims:bool)"
    assert reduction.meaning == OPS["sum"].meaning


OPERANDS: dict[str, tuple[Shape, ...]] = {
    "matmul": ((N, 4), (4, 5)),
    "squeeze": ((N, 1, 4),),
    "unique": ((N, 4),),
}
SHAPES: dict[str, Shape] = {"reshape": (4, N), "broadcast_to": (2, N, 4)}
ATTRS: dict[str, dict[str, Attr]] = {
    "permute_dims": {"axes": (1, 0)},
    "expand_dims": {"axis": (0,)},
    "squeeze": {"axis": (1,)},
    "nn.softmax": {"axis": 1},
    "astype": {"dtype": "int32"},
    "masked_fill": {"value": 0.5},
    "clip": {"min": 0.0, "max": 1.0},
    "nn.leakyrelu": {"alpha": 0.25},
    "nn.softplus": {"beta": 1.0, "threshold": 20.0},
    **{name: {"axis": (0,), "keepdims": False} for name in ("sum", "max", "min", "mean")},
}
DEDUCED = [name for name, t in operators().items() if t.in_kernel and name not in asked()]
"""Of others the struct-info rule is asked itself."""

DTYPES: dict[str, str] = {
    **dict.fromkeys((f"bitwise_{kind}" for kind in ("and", "not", "or", "xor")), "int32"),
    **dict.fromkeys((f"logical_{kind}" for kind in ("and", "not", "or", "xor")), "bool"),
    **dict.fromkeys(("left_shift", "right_shift"), "int32"),
}


@pytest.mark.parametrize("name", DEDUCED)
def test_facts_say_of_every_operator_what_its_struct_info_rule_says(name: str) -> None:
    op = operators()[name].op
    shapes = OPERANDS.get(name, ((N, 4),) * len(op.operands))
    infos: list[StructInfo] = []
    for operand, shape in zip(op.operands, (*shapes, ())[: len(op.operands)], strict=True):
        dtype = "bool" if operand.name in ("condition", "mask") else DTYPES.get(name, "float32")
        if operand.kind == "tensor":
            infos.append(tensor(shape, dtype))
        else:
            infos.append(ShapeStructInfo(SHAPES[name], len(SHAPES[name])))
    attrs = ATTRS.get(name, {})
    leaves = [i for i in infos if isinstance(i, TensorStructInfo)]
    children = tuple(
        k if isinstance(i, TensorStructInfo) else i
        for k, i in enumerate(infos)
        if isinstance(i, TensorStructInfo | ShapeStructInfo)
    )
    classes = {
        k: EClass("tensor", (leaf_node(k),), info)
        for k, info in enumerate(infos)
        if isinstance(info, TensorStructInfo)
    }
    root = len(infos)
    unknown = EClass("tensor", (Node(name, children, tuple(attrs.items())),), TensorStructInfo())
    view = View({**classes, root: unknown}, (root,), tuple(Var(f"x{i}", i) for i in leaves))

    saturated = saturate(view, RuleBook.default(families=())).view

    result = saturated.classes[saturated.roots[0]]
    assert result.struct_info == op.rule(*infos, **attrs)
    assert "store" in {node.op for node in result.nodes}  # only what facts type is lowered


KEEPING: dict[str, tuple[tuple[Shape, ...], dict[str, Attr]]] = {
    "nn.softmax": (((N, 4),), {"axis": 0}),
    "nn.log_softmax": (((N, 4, 5),), {"axis": 1}),
    "nn.layer_norm": (((N, 4, 5), (4, 5), (4, 5)), {"axes": (1, 2)}),
    "nn.rms_norm": (((N, 4, 5), (5,)), {"axes": (2,)}),
    "nn.group_norm": (
        ((N, 5, 6, 4), (4,), (4,)),
        {"num_groups": 2, "channel_axis": 3, "axes": (1, 2)},
    ),
    "nn.instance_norm": (((N, 4, 5, 6), (4,), (4,)), {"channel_axis": 1, "axes": (2, 3)}),
    "nn.rotary_embedding": (((N, 7, 2, 8), (7, 1, 4), (7, 1, 4)), {"interleaved": True}),
}


def test_operators_that_keep_a_shape_have_the_shape_of_their_first_operand() -> None:
    assert KEEPING.keys() == KEEPS_SHAPE
    for name, (shapes, attrs) in KEEPING.items():
        op = operators()[name].op
        every = {a.name: a.default for a in op.attrs} | attrs
        info = op.rule(*(tensor(shape, "float32") for shape in shapes), **every)
        assert isinstance(info, TensorStructInfo)
        assert info.dims == shapes[0], name
        assert name not in asked()
