"""``rx.rules.check``: what it says of rules of one's own, in one process and in several."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.errors import RuleError
from relax_egraph.verify import workers
from relax_egraph.verify.user_rules import Verdict

MINE = """
; --x = x
; float: exact
(rewrite (R.negative (R.negative x)) x :name "twice-negative")

; x · y + x · z = x · (y + z)
; float: reassociates
(rewrite (R.add (R.multiply x y) (R.multiply x z)) (R.multiply x (R.add y z)) :name "factored")

; x - x = 0
; float: fast
(rewrite (R.subtract x x) (R.broadcast_to (R.const 0.0 d) s)
  :when ((= s (shape-of x)) (= d (dtype-of x))) :name "nothing-left")

; the transpose of x is x
; float: exact
(rewrite (R.permute_dims x (vec-of 1 0)) x :name "symmetric")

(relation never-said (Tensor))
; float: exact
(rewrite (R.exp x) x :when ((never-said x)) :name "of-what-none-says")
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "mine.egg"
    path.write_text(MINE, "utf-8")
    return path


@pytest.fixture(scope="module")
def verdicts(mine: Path) -> Mapping[str, Verdict]:
    return {v.rule: v for v in rx.rules.check(mine, processes=1)}


def test_each_rule_of_a_file_has_a_verdict(verdicts: Mapping[str, Verdict]) -> None:
    assert {name: (v.kind, v.sound) for name, v in verdicts.items()} == {
        "twice-negative": ("exact", True),
        "factored": ("reassociates", True),
        "nothing-left": ("fast", True),
        "symmetric": ("unsound", False),
        "of-what-none-says": ("never fired", False),
    }


def test_a_sound_rule_has_a_line(verdicts: Mapping[str, Verdict], mine: Path) -> None:
    found = verdicts["nothing-left"]

    assert str(found) == (
        f"nothing-left ({mine}:12:1): fast (differs on: inf, NaN); "
        f"{found.fired} instances of {', '.join(found.dtypes)}, "
        f"ranks {', '.join(map(str, found.ranks))}; shapes proved for all sizes"
    )


def test_what_a_rule_changes_is_measured(verdicts: Mapping[str, Verdict]) -> None:
    exact, factored = verdicts["twice-negative"], verdicts["factored"]

    assert (exact.ulps, exact.differs_on) == (0, ())
    assert 0.5 <= factored.ulps <= 8
    assert {"rounding", "overflow", "inf"} <= {*factored.differs_on}


def test_a_wrong_rule_comes_with_the_operands_it_is_wrong_for(
    verdicts: Mapping[str, Verdict],
) -> None:
    _, *example = str(verdicts["symmetric"]).splitlines()

    assert [line.strip() for line in example] == [
        "left   (R.permute_dims x (vec-of 1 0))",
        "right  x",
        'x: R.Tensor((1, 2), "float32") = [[0.0, 0.0]]',
        'left is R.Tensor((2, 1), "float32") = [[0.0], [0.0]]',
        'right is R.Tensor((1, 2), "float32") = [[0.0, 0.0]]',
    ]


def test_a_rule_that_never_fires_says_why(verdicts: Mapping[str, Verdict], mine: Path) -> None:
    assert str(verdicts["of-what-none-says"]) == (
        f"of-what-none-says ({mine}:21:1): never fired: no rule deduces never-said"
    )


def test_a_verdict_is_data(verdicts: Mapping[str, Verdict], mine: Path) -> None:
    said = json.loads(json.dumps(verdicts["nothing-left"].as_dict()))

    assert {k: said[k] for k in ("rule", "file", "line", "kind", "stated", "differs_on")} == {
        "rule": "nothing-left",
        "file": str(mine),
        "line": 12,
        "kind": "fast",
        "stated": "fast",
        "differs_on": ["inf", "NaN"],
    }
    assert json.loads(json.dumps(verdicts["symmetric"].as_dict()))["counterexample"]["program"] == [
        'x: R.Tensor((1, 2), "float32") = [[0.0, 0.0]]'
    ]


def test_processes_come_to_the_same_verdicts(verdicts: Mapping[str, Verdict], mine: Path) -> None:
    names = ["factored", "symmetric"]
    reported: list[Verdict] = []

    found = rx.rules.check(mine, only=names, processes=2, progress=reported.append)

    assert [v.as_dict() for v in found] == [verdicts[name].as_dict() for name in names]
    assert sorted(map(str, reported)) == sorted(map(str, found))


def test_another_seed_draws_other_instances(verdicts: Mapping[str, Verdict], mine: Path) -> None:
    first, again = (
        rx.rules.check(mine, only=["factored"], seed=1, processes=1)[0] for _ in range(2)
    )

    assert str(first) == str(again) != str(verdicts["factored"])


def test_a_rule_without_end_costs_its_own_verdict(
    monkeypatch: pytest.MonkeyPatch, mine: Path
) -> None:
    values, operands = "abcdefg", "stuvwxy"
    made = " ".join(f"(= {a} (R.negative {x}))" for a, x in zip(values, operands, strict=True))
    whole = " ".join(values), " ".join(operands)
    rule = f"""; float: exact
        (rule ({made}) ((union (R.concat (vec-of {whole[0]}) 0) (R.concat (vec-of {whole[1]}) 0)))
          :name "without-end")"""
    monkeypatch.setattr(workers, "SECONDS", 3.0)

    (verdict,) = rx.rules.check(rule, processes=2)

    assert str(verdict) == (
        "without-end (<rules>:2:9): never fired: its check did not end within 3 s of processor time"
    )


def test_storage_types_are_drawn() -> None:
    rule = "; float: exact\n(rewrite (R.negative (R.negative x)) x)"

    (verdict,) = rx.rules.check(rule, trials=60, processes=1)

    assert {"float16", "bfloat16", "float32", "float64", "int32", "uint8"} <= {*verdict.dtypes}


_UNBOUND = "<rules>:1:20: y is unbound: it occurs neither on the left side nor in :when"
_DID_YOU_MEAN = "no rule of the files is named 'factord'; did you mean factored?"


@pytest.mark.parametrize(
    ("given", "how", "error", "said"),
    [
        (MINE, {"only": ["x"]}, ValueError, "no rule of the files is named 'x'"),
        (MINE, {"only": ["factord"]}, ValueError, _DID_YOU_MEAN),
        (MINE, {"only": []}, ValueError, "no rule was checked: there is none to check"),
        (MINE, {"trials": 0}, ValueError, "trials is 0, needs a number of trials, 1 or more"),
        ("(relation a-fact (Tensor))", {}, ValueError, "<rules> has no rules: none was checked"),
        ("(rewrite (R.exp x) y)", {}, RuleError, _UNBOUND),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(given: str, how: dict[str, Any], error: type, said: str) -> None:
    with pytest.raises(error) as problem:
        rx.rules.check(given, processes=1, **how)

    assert str(problem.value).splitlines()[0] == said


def test_errors_of_sums_that_cancel_are_rounding() -> None:
    """What is left of products of 10⁸ is wrong in its fourth digit, on either side."""
    rule = """; float: reassociates
        (rewrite (R.subtract (R.matmul x z) (R.matmul y z)) (R.matmul (R.subtract x y) z)
          :when ((= (shape-of x) (shape-of y))))"""

    (verdict,) = rx.rules.check(rule, trials=100, seed=1, processes=1)

    assert verdict.kind == "reassociates", str(verdict)


def test_an_instance_says_one_number_of_a_value() -> None:
    """What is drawn of a broadcast is what is drawn of the operand, or the instance is dropped."""
    rule = """; float: exact
        (rewrite (R.abs y) y :when ((= y (R.broadcast_to x s)) (= c (const-scalar x))
                                    (= d (const-scalar y)) (<= 0.0 c) (<= 0.0 d)))"""

    (verdict,) = rx.rules.check(rule, processes=1)

    assert verdict.sound, str(verdict)


def test_a_number_is_stated_of_a_value_that_another_rule_makes() -> None:
    rules = """
        (relation halved (Tensor Tensor))
        ; float: exact
        (rule ((= y (R.exp x)) (= s (shape-of x)) (= d (dtype-of y)))
              ((halved y (R.multiply y (R.broadcast_to (R.const 0.5 d) s)))) :name "half")
        ; float: exact
        (rule ((halved y h) (= c (const-scalar h)) (= d (dtype-of y)) (= s (shape-of y)))
              ((union y (R.broadcast_to (R.const (+ c c) d) s))) :name "twice-a-half")"""

    verdicts = rx.rules.check(rules, trials=6, processes=1)

    assert [(v.rule, v.kind) for v in verdicts] == [("half", "exact"), ("twice-a-half", "exact")]


def test_a_constant_is_a_number_of_its_dtype() -> None:
    rule = """; float: exact
        (rewrite (R.logical_or x (R.logical_not x)) (R.broadcast_to (R.const 2.0 "bool") s)
          :when ((= s (shape-of x))))"""

    (verdict,) = rx.rules.check(rule, trials=6, processes=1)

    why = "R.const cannot be computed: 2.0 is no number of dtype bool"
    assert verdict.kind == "unsound"
    assert str(verdict).endswith(f"right has no value: {why}"), str(verdict)


def test_a_part_of_a_split_tensor_is_one_only_where_its_data_are(tmp_path: Path) -> None:
    file = tmp_path / "ones.egg"
    file.write_text(
        "; x · 1 = x, where 1 is a part of a split tensor\n"
        "; float: exact\n"
        "(rewrite (R.multiply x one) x\n"
        "  :when ((= one (R.tuple_get (R.split w i a) 0)) (= 1.0 (const-scalar one))\n"
        '         (= (shape-of x) (shape-of one))) :name "times-part-of-ones")\n',
        "utf-8",
    )
    (verdict,) = rx.rules.check(file, processes=1)
    assert (verdict.kind, verdict.sound) == ("exact", True)


def test_a_variable_may_have_any_name() -> None:
    """Not only those that the check has not made itself."""
    for name in ("_5", "x.dtype", "negative-0-0.x"):
        rule = f"""; float: exact
            (rule ((= t (R.add x (R.negative (R.negative y)))) (= u (R.exp {name}))
                   (= (shape-of x) (shape-of {name})) (= (dtype-of x) (dtype-of {name})))
                  ((union t (R.add x {name}))))"""
        (verdict,) = rx.rules.check(rule, trials=6, processes=1)
        assert (verdict.kind, verdict.sound) == ("unsound", False)


def test_a_symbol_may_be_of_an_operand_that_no_side_computes() -> None:
    rule = """; float: reassociates
        (rule ((write-out-attention another s q k v c)
               (= t (R.nn.attention q k v (R.none) c "" window))
               (= u (shape-of s)) (= d (dtype-of s)))
              ((union t (R.permute_dims
                 (R.matmul (R.nn.softmax (R.multiply s (R.broadcast_to (R.const c d) u)) 3)
                           (R.permute_dims v (vec-of 0 2 1 3)))
                 (vec-of 0 2 1 3))))
          :name "attention-as-softmax-mutant")"""
    (verdict,) = rx.rules.check(rule, processes=1)
    assert verdict.kind == "reassociates"


def test_a_quotient_by_an_empty_extent_is_unsound() -> None:
    rule = """; float: exact
        (rule ((= t (R.add x x)) (= 1 (rank-of x)) (= s (shape-of t)) (= n (vec-get s 0)))
              ((union t (R.reshape (R.add x x) (vec-of (DimMul n (DimFloorDiv n n)))))))"""

    (verdict,) = rx.rules.check(rule, processes=1)

    why = "a rule makes the dimension (0) // (0), which has no value"
    assert verdict.kind == "unsound"
    assert str(verdict).endswith(f"unsound: {why}")
