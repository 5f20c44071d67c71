"""The command relax-egraph rules prove."""

import json
from functools import partial
from pathlib import Path

import pytest

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.prove.certificate import Certificate, certified
from relax_egraph.prove.user_rules import certificates
from relax_egraph.workers.pool import Pool
from tests.support.command import invoke

pytest.importorskip("z3", reason="proofs need z3-solver")

TEXT = """\
; x + y = y + x
; float: exact
(rewrite (R.add x y) (R.add y x) :name "swap-of-sum")

; x - y = y - x, which is wrong
; float: exact
(rewrite (R.subtract x y) (R.subtract y x) :name "swap-of-difference")

; the running product of sizes
; float: exact
(rewrite (R.cumprod (R.abs x) k "" false) (R.abs (R.cumprod x k "" false))
  :name "running-product-of-sizes")
"""


def test_each_rule_has_a_status_and_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "mine.egg"
    file.write_text(TEXT, "utf-8")

    result = invoke("rules", "prove", str(file), "--json")

    swap, difference, running = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (swap["name"], swap["status"], swap["reason"]) == ("swap-of-sum", "proven", "")
    assert swap["ranks"] == [0, 1, 2, 3, 4]
    assert difference["status"] == "refuted"
    assert running["status"] == "not expressible"
    assert "cumprod" in running["reason"]


def test_a_proven_rule_is_printed_with_its_ranks() -> None:
    result = invoke("rules", "prove", "--only", "relu-twice")

    assert result.exit_code == 0
    assert result.stdout == (
        "relu-twice: proven for all extents, operands of the ranks 0, 1, 2, 3, 4\n"
    )


def test_nothing_to_prove_is_a_usage_error() -> None:
    result = invoke("rules", "prove")

    assert result.exit_code == 2
    assert "--all" in result.stderr


RECURSIVE = """\
; (times-one-number y x k): y = x · k, k one number
(relation times-one-number (Tensor Tensor Tensor))
(meaning (times-one-number y x k)
  ((= y (R.multiply x (R.broadcast_to k s))) (= s (shape-of x)) (= 0 (rank-of k))
   (is-float x)))

; x · k
; float: exact
(rule ((= y (R.multiply x (R.broadcast_to k s))) (= 0 (rank-of k)) (is-float x))
      ((times-one-number y x k))
  :name "times")

; -(x · k) = x · -k
; float: exact
(rule ((= z (R.negative y)) (times-one-number y x k)) ((times-one-number z x (R.negative k)))
  :name "times-again")

; x · k + x · k = (x + x) · k
; float: reassociates
(rule ((= t (R.add y y)) (times-one-number y x k) (= s (shape-of x)))
      ((union t (R.multiply (R.add x x) (R.broadcast_to k s))))
  :name "twice-multiplied")
"""


def test_a_rule_that_reads_a_recursive_relation_is_proven_by_its_meaning(tmp_path: Path) -> None:
    file = tmp_path / "mine.egg"
    file.write_text(RECURSIVE, "utf-8")

    printed = invoke("rules", "prove", str(file))
    (read,) = json.loads(invoke("rules", "prove", str(file), "--json").stdout)

    assert printed.exit_code == 0
    assert printed.stdout == (
        "twice-multiplied: proven for all extents, operands of the ranks 0, 1, 2, 3, 4, "
        "by the meaning of times-one-number\n"
    )
    assert (read["status"], read["meanings"]) == ("proven", ["times-one-number"])


def test_a_rule_that_does_not_keep_the_meaning_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.egg"
    file.write_text(RECURSIVE.replace("(= z (R.negative y))", "(= z (R.exp y))"), "utf-8")

    result = invoke("rules", "prove", str(file))

    assert result.exit_code == 0
    assert result.stdout.startswith(
        "twice-multiplied: not proven: the meaning of times-one-number is not shown of "
        "times-again: the elements differ"
    )


def test_without_a_meaning_a_recursive_relation_is_not_proven(tmp_path: Path) -> None:
    file = tmp_path / "mine.egg"
    begin, end = RECURSIVE.index("(meaning"), RECURSIVE.index("; x · k\n")
    file.write_text(RECURSIVE[:begin] + RECURSIVE[end:], "utf-8")

    result = invoke("rules", "prove", str(file))

    assert result.stdout == (
        "twice-multiplied: not proven: times-one-number is deduced from times-one-number: "
        "(meaning (times-one-number …) …) beside its declaration states what it says\n"
    )


def test_proofs_go_on_from_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, journal = tmp_path / "mine.egg", tmp_path / "proofs.jsonl"
    file.write_text(TEXT, "utf-8")
    words = ("rules", "prove", str(file), "--json", "--journal", str(journal))
    whole = json.loads(invoke(*words).stdout)
    header, first, *_ = lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(header + first + lines[2][:30])
    proven: list[str] = []

    def counted(rule: Rule, book: RuleBook) -> Certificate:
        proven.append(rule.name)
        return certified(rule, book)

    monkeypatch.setattr("relax_egraph.prove.tasks.certificate", counted)
    resumed = json.loads(invoke(*words).stdout)

    def without_seconds(proofs: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{k: v for k, v in proof.items() if k != "cpu_seconds"} for proof in proofs]

    assert without_seconds(resumed) == without_seconds(whole)
    assert proven == ["swap-of-difference", "running-product-of-sizes"]


def test_a_journal_of_other_rules_is_refused(tmp_path: Path) -> None:
    file, journal = tmp_path / "mine.egg", tmp_path / "proofs.jsonl"
    words = ("rules", "prove", str(file), "--journal", str(journal))
    sums, differences, _ = TEXT.split("\n\n")
    file.write_text(sums, "utf-8")
    invoke(*words)
    file.write_text(differences, "utf-8")

    refused = invoke(*words)

    assert refused.exit_code == 2
    assert refused.stderr == (
        f"Error: {journal} is of other rules than this run; give each run a journal of its own\n"
    )


def test_a_check_proves_where_it_checks_and_keeps_proofs_in_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, journal = tmp_path / "mine.egg", tmp_path / "checks.jsonl"
    file.write_text(TEXT.split("\n\n")[0], "utf-8")
    words = ("rules", "check", str(file), "--prove", "--json", "--journal", str(journal))

    def here(rule: Rule, book: RuleBook) -> Certificate:
        raise AssertionError(f"{rule.name} is proven in this process")

    monkeypatch.setattr("relax_egraph.prove.tasks.certificate", here)
    first = json.loads(invoke(*words, "--processes", 2).stdout)
    again = json.loads(invoke(*words, "--processes", 1).stdout)

    assert [proof["status"] for proof in first["proofs"]] == ["proven"]
    assert again == first


def test_proofs_in_other_processes_are_those_of_this_one() -> None:
    book = RuleBook.default([TEXT])
    rules = [rule for rule in book.rules if rule.name in book.of_user]

    here, there = (
        {c.verdict.rule.name: (c.verdict.status, c.verdict.reason, len(c.questions)) for c in made}
        for made in (certificates(book, rules), certificates(book, rules, None, partial(Pool, 1)))
    )

    assert there == here
