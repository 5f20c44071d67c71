"""The page in a browser: what is typed is evaluated, within limits, and the page stays alive."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from relax_egraph.play.examples import Example, examples
from relax_egraph.play.server import PlayServer
from relax_egraph.play.start import Start
from relax_egraph.workers.process import Limits
from tests.support.devtools import Page, page

FIRST = examples()[0]

ENDLESS = '(rewrite (R.cos x) (R.cos (R.sin x)) :name "endless")'
"""Each iteration adds a node: the bounds on the run end it."""

_NINE = " ".join(f"(= y{k} (R.add a{k} b{k}))" for k in range(9))
CROSS = f"""
(relation nine-values ({" ".join(["Tensor"] * 9)}))
(rule ({_NINE}) ((nine-values {" ".join(f"y{k}" for k in range(9))})) :name "cross")
"""
"""All choices of nine of the sums of a program: one iteration takes years, or all memory."""

LARGE = """@R.function
def main(x: R.Tensor((1000000000,), "float32")):
    with R.dataflow():
        ones = R.ones((1000000000,), "float32")
        sums = R.cumsum(ones, axis=0)
        result = R.cos(R.negative(R.add(x, sums)))
        R.output(result)
    return result
"""

DONE = "document.querySelector('#status')?.textContent.startsWith('up to date')"
ENDED = "/was ended after 4 s|ran out of its/.test(document.querySelector('#status').textContent)"


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    server = PlayServer(Start(FIRST.program, FIRST.rules), Limits(60.0, 3 << 30), 2)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def shown(server: PlayServer) -> Iterator[Page]:
    with TemporaryDirectory() as folder, page(Path(folder)) as one:
        one.open(server.address)
        one.wait(DONE)
        yield one
        assert one.faults() == []
        assert {a.startswith(server.address) for a in one.addresses() if a[:5] != "data:"} == {True}


def choose(shown: Page, example: Example) -> None:
    shown.value(
        f"document.querySelector('#examples').value = {json.dumps(example.name)};"
        "document.querySelector('#examples').dispatchEvent(new Event('change'))"
    )
    shown.wait(DONE)


def text(shown: Page, selector: str) -> str:
    return shown.value(f"document.querySelector({json.dumps(selector)}).innerText")


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_every_example_runs(shown: Page, example: Example) -> None:
    choose(shown, example)

    assert shown.value("document.querySelector('#rules textarea').value") == example.rules
    assert shown.value("document.querySelectorAll('#own li').length") > 0
    assert " 0 matches" not in text(shown, "#own")
    assert shown.value("document.querySelectorAll('#picture .row.chosen').length") > 0
    assert shown.value("document.querySelectorAll('#rules-mistakes li').length") == 0


def test_the_stepper_goes_back_to_the_program_as_it_is_written(shown: Page) -> None:
    choose(shown, FIRST)
    after = shown.value("document.querySelectorAll('#picture .row').length")

    shown.value("document.querySelector('#step').value = 0")
    shown.value("document.querySelector('#step').dispatchEvent(new Event('input'))")

    assert "as it is written" in text(shown, "#step-text")
    assert shown.value("document.querySelectorAll('#picture .row').length") < after
    assert text(shown, "#effects") == ""


def test_a_click_on_a_value_asks_why_a_rule_did_not_match_there(shown: Page) -> None:
    choose(shown, FIRST)
    shown.value("document.querySelector('#tab-egraph').click()")

    shown.value(
        "document.querySelector('[aria-label=\"class scaled\"]')"
        ".dispatchEvent(new MouseEvent('click'))"
    )
    answer = shown.wait("document.querySelector('#selected pre')?.textContent")

    assert "cos-is-even" in answer
    assert "scaled" in answer


def test_a_check_shows_the_counterexample(shown: Page) -> None:
    choose(shown, examples()[1])

    shown.value("document.querySelector('#own [data-kind=check]').click()")
    shown.wait("!document.querySelector('#verdict').hidden")

    assert "left is 1.0, right is -1.0" in text(shown, "#verdict")
    assert "not sound" in text(shown, "#own")


def test_a_kernel_has_its_code(shown: Page) -> None:
    choose(shown, FIRST)

    shown.value("document.querySelector('#tab-code').click()")
    shown.wait("document.querySelector('#code-text').textContent.includes('T.vectorized')")
    shown.value("document.querySelector('#stage').value = 'asm'")
    shown.value("document.querySelector('#stage').dispatchEvent(new Event('change'))")
    shown.wait("document.querySelector('#code-text').textContent.includes('fused_cos_ewise_fma:')")
    shown.value("document.querySelector('#tab-egraph').click()")


def test_a_mistake_is_underlined_and_said(shown: Page) -> None:
    choose(shown, FIRST)

    shown.write("#rules textarea", FIRST.rules.replace("(R.cos x)", "(R.coss x)"))
    shown.wait("document.querySelector('#rules .bad')")

    assert text(shown, "#rules .bad") == "R.coss"
    assert "unknown operator R.coss\ndid you mean R.cos?" in text(shown, "#rules-mistakes")
    assert "1 mistake" in text(shown, "#status")
    shown.write("#program textarea", FIRST.program.replace("minus)", "mines)"))
    shown.wait("document.querySelector('#program .bad')")
    assert text(shown, "#program .bad") == "mines"


WORDS = "[...document.querySelectorAll('.words li')].map((li) => li.firstChild.textContent)"


def key(shown: Page, field: str, name: str) -> None:
    shown.value(
        f"document.querySelector({json.dumps(field)}).dispatchEvent("
        f"new KeyboardEvent('keydown', {{ key: {json.dumps(name)}, bubbles: true }}))"
    )


def test_a_word_is_completed_with_its_arguments(shown: Page) -> None:
    rules = "#rules textarea"

    shown.write(rules, "(rewrite (R.nega")
    assert shown.value(WORDS) == ["R.negative"]
    key(shown, rules, "Enter")

    area = f"document.querySelector({json.dumps(rules)})"
    assert shown.value(f"{area}.value") == "(rewrite (R.negative x"
    assert shown.value(f"{area}.value.slice({area}.selectionStart, {area}.selectionEnd)") == "x"
    assert shown.value(WORDS) == []

    shown.write(rules, "(rewrite (R.log")
    assert {word[:5] for word in shown.value(WORDS)} == {"R.log"}
    key(shown, rules, "Escape")
    assert shown.value(WORDS) == []


def test_an_operator_of_a_program_is_completed(shown: Page) -> None:
    shown.write("#program textarea", "def f(x):\n    return R.sigm")
    assert shown.value(WORDS) == ["R.sigmoid"]
    key(shown, "#program textarea", "Tab")

    value = shown.value("document.querySelector('#program textarea').value")
    assert value.endswith("return R.sigmoid")


def test_the_address_holds_the_state(shown: Page, server: PlayServer, tmp_path: Path) -> None:
    choose(shown, examples()[4])
    address = shown.value("location.href")

    with page(tmp_path) as other:
        other.open(address)
        other.wait(DONE)
        assert other.value("document.querySelector('#rules textarea').value") == examples()[4].rules
        assert other.value("document.querySelector('#examples').value") == examples()[4].name
        choose(other, FIRST)
    assert shown.value("location.href") == address
    assert address.startswith(f"{server.address}#")


def test_an_endless_rule_ends_at_its_bounds(shown: Page) -> None:
    choose(shown, FIRST)

    shown.write("#rules textarea", ENDLESS)
    shown.wait("document.querySelector('#own li[data-rule=endless]')")
    shown.wait(DONE)

    assert "iterations" in text(shown, "#costs")
    assert "most matches: endless" in text(shown, "#costs")


def test_a_rule_beyond_all_limits_is_ended_and_the_page_stays_alive(
    shown: Page, server: PlayServer
) -> None:
    choose(shown, examples()[8])
    server.tabs.limits = Limits(4.0, 3 << 30)

    shown.write("#rules textarea", CROSS)
    shown.wait(ENDED)

    server.tabs.limits = Limits(60.0, 3 << 30)
    assert shown.value("document.querySelector('#results').classList.contains('stale')")
    choose(shown, FIRST)
    assert "1 match" in text(shown, "#own")


def test_a_newer_edit_does_not_wait_for_an_older_one(shown: Page) -> None:
    choose(shown, examples()[8])

    shown.write("#rules textarea", CROSS)
    shown.wait("document.querySelector('#status').textContent === 'evaluating …'")
    choose(shown, FIRST)

    assert "1 match" in text(shown, "#own")


def test_a_program_with_a_thousand_million_elements_is_evaluated(shown: Page) -> None:
    choose(shown, FIRST)

    shown.write("#program textarea", LARGE)
    shown.wait("document.querySelector('#programs').textContent.includes('1000000000')")
    shown.wait(DONE)
    shown.value("document.querySelector('#own [data-kind=check]').click()")
    shown.wait("!document.querySelector('#verdict').hidden")

    assert "exact in" in text(shown, "#own")
    choose(shown, FIRST)


def test_what_is_typed_is_text(shown: Page) -> None:
    evil = "<img src=x onerror=document.title='broken'>"

    shown.write("#rules textarea", f"; {evil}\n({evil}\n{FIRST.rules}")
    shown.wait("document.querySelector('#rules-mistakes li')")

    assert evil in text(shown, "#rules pre")
    assert shown.value("document.querySelectorAll('img').length") == 0
    assert shown.value("document.title") == "relax-egraph: playground"
