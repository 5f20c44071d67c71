"""The page that says why a module is what it is: complete, escaped, and alive in a browser."""

import copy
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import relax_egraph as rx
from relax_egraph.reasons.explain import explain
from relax_egraph.reasons.page.charts import timeline
from relax_egraph.reasons.page.render import framed, page_of
from relax_egraph.reasons.times import time_text
from tests.reasons.test_explain import DENSE
from tests.support.browser import dom_of
from tests.support.command import invoke

EVIL = "<script>alert('x')</script>\"&"

VOID = {"meta", "input", "br", "hr", "img", "link", "rect", "polygon", "polyline", "path"}


class Document(HTMLParser):
    """Elements with their attributes, and text; raises `AssertionError` if it is not balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def ids(self) -> list[str]:
        """The names of places in it."""
        return [i for _, attrs in self.elements if (i := attrs.get("id"))]

    def text(self) -> str:
        """What a reader sees."""
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return explain(rx.parse(DENSE)).figures()


@pytest.fixture(scope="module")
def page(figures: dict[str, Any]) -> str:
    return page_of(figures, "dense.py")


def test_without_the_package_that_fills_pages_in_it_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reasons, script = explain(rx.parse(DENSE)), tmp_path / "dense.py"
    script.write_text(DENSE)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "relax_egraph.reasons.page.render")
    needed = "a page of HTML needs the package jinja2: pip install 'relax-egraph[html]'"

    with pytest.raises(ImportError) as error:
        reasons.page()
    result = invoke("explain", script, "--html", tmp_path / "why.html")

    assert str(error.value) == needed
    assert result.exit_code == 2
    assert result.stderr.endswith(f"\nError: {needed}\n")
    table = ElementTree.fromstring(getattr(reasons, "_repr_html_")())  # noqa: B009
    assert [cell.text for cell in table.iter("th")] == ["rule", "matches"]


def test_a_page_is_well_formed(page: str) -> None:
    document = Document(page)

    assert len(document.ids) == len(set(document.ids))


def test_links_lead_to_places_of_the_page(page: str) -> None:
    document = Document(page)

    links = [href for tag, attrs in document.elements if tag == "a" and (href := attrs["href"])]
    assert links
    assert not [href for href in links if href.removeprefix("#") not in document.ids]


def test_a_page_needs_no_network(page: str) -> None:
    document = Document(page)

    named = {"src", "href", "action", "data", "poster", "xlink:href", "srcset"}
    addresses = [v for _, attrs in document.elements for k, v in attrs.items() if k in named]
    assert {address[0] for address in addresses if address} == {"#"}
    rest = page.replace("http://www.w3.org/2000/svg", "")  # the name of a language
    assert not re.search(r"url\(|@import|//[a-z]+\.[a-z]", rest)
    assert "default-src 'none'" in page


def test_all_figures_can_be_read_without_script(page: str, figures: dict[str, Any]) -> None:
    text = Document(page).text()

    for kernel in figures["kernels"]:
        for said in (kernel["variable"], kernel["calls"], *kernel["replaces"], *kernel["rules"]):
            assert said in text
    for rule in figures["rules"]:
        assert rule["rule"] in text
        assert " ".join(rule["law"].split()) in text
    for region in figures["regions"]:
        assert region["status"] in text
        for phase in region["phases"]:
            assert f"{phase['phase']}{phase['stop']}{phase['iterations']}{phase['nodes']}" in text
    for c in figures["egraph"]["classes"]:
        for node in c["nodes"]:
            assert node["text"] in text
    for program in ("before", "after"):
        for line in figures[program]:
            assert " ".join(line["text"].split()) in text


def test_hostile_text_is_text() -> None:
    """Rules and programs say what they like."""
    figures = _hostile(explain(rx.parse(DENSE)).figures(quick=True))

    page = page_of(figures, EVIL)

    document = Document(page)
    scripts = [attrs for tag, attrs in document.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert not [attrs for _, attrs in document.elements if any(k.startswith("on") for k in attrs)]
    assert document.text().count(EVIL) > 20


def _hostile(figures: Any) -> Any:
    """`figures` with every text that a file may say replaced by a hostile one."""
    free = {"rule", "law", "family", "variable", "calls", "text", "fate", "name", "function"}
    free |= {"type", "output", "busiest", "stop", "status", "bound_source"}
    lists = {"replaces", "operators", "names", "notes", "bans", "given", "lines"}
    if isinstance(figures, list):
        return [_hostile(each) for each in figures]
    if not isinstance(figures, dict):
        return figures
    found = {key: _hostile(value) for key, value in figures.items()}
    for key, value in found.items():
        if key in free and isinstance(value, str):
            found[key] = EVIL
        elif key in lists and value and isinstance(value[0], str):
            found[key] = [EVIL] * len(value)
    return found


def test_a_rule_file_may_be_hostile(tmp_path: Path) -> None:
    rules = tmp_path / "evil.egg"
    rules.write_text(
        '; </script><script>alert("law")</script>\n'
        "(rewrite (R.nn.relu (R.nn.relu x)) (R.nn.relu x)"
        ' :name "<img/src=x/onerror=alert(1)>")\n'
    )

    document = Document(explain(rx.parse(DENSE), [rules]).page())

    assert not [attrs for tag, attrs in document.elements if tag == "img"]
    assert '</script><script>alert("law")</script>' in document.text()


def test_what_is_not_known_is_said_to_be_so() -> None:
    text = Document(explain(rx.parse(DENSE)).page(quick=True)).text()

    assert "The rules that led to each kernel were left out; `chains` proves them." in text
    assert "The gain of each rule was left out; `gains` optimizes once without each rule." in text
    assert "NaN" not in text
    assert "None" not in text


def test_a_module_without_blocks_has_a_page() -> None:
    module = rx.parse('@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return x\n')

    assert "Nothing runs." in Document(explain(module).page()).text()


def test_a_frame_holds_the_page(page: str) -> None:
    ((tag, attrs),) = Document(framed(page)).elements

    assert tag == "iframe"
    assert attrs["srcdoc"] == page
    assert attrs["sandbox"] == "allow-scripts"


def test_a_time_line_has_a_point_for_each_iteration() -> None:
    phase = {"phase": "rewrite", "iterations": 2, "growth": [10, 30], "nodes": 40}
    chart = timeline({"phases": [phase, {**phase, "iterations": 1, "growth": [40], "nodes": 20}]})

    assert chart.line == "8.0,105.0 242.7,55.0 477.3,30.0 477.3,30.0 712.0,80.0"
    assert [(band.left, band.width) for band in chart.bands] == [(8.0, 469.3), (477.3, 234.7)]
    assert chart.most == 40


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0, "0 µs"),
        (2e-8, "0.02 µs"),
        (1.5e-6, "1.5 µs"),
        (0.9996e-3, "1000 µs"),
        (0.0123, "12.3 ms"),
        (-0.5, "-500 ms"),
        (1234.5, "1234 s"),
    ],
)
def test_times_are_short(seconds: float | None, text: str) -> None:
    assert time_text(seconds) == text


def test_a_page_of_a_thousand_kernels_is_small(figures: dict[str, Any]) -> None:
    many = copy.copy(figures)
    many["kernels"] = [{**figures["kernels"][k % 3], "kernel": k} for k in range(1000)]
    many["before"] = [{**figures["before"][12], "kernels": [k]} for k in range(3000)]
    many["after"] = [{**figures["after"][12], "kernel": k % 1000} for k in range(12000)]

    text = page_of(many)

    assert len(text) < 4_000_000
    opened = [a for tag, a in Document(text).elements if tag == "details" and "open" in a]
    assert not opened


# --- in a browser


@pytest.fixture(scope="module")
def file(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "why.html"
    path.write_text(page, "utf-8")
    return path


def kept(dom: str) -> list[str]:
    """What is defined by the lines that are marked, of both programs."""
    return re.findall(r'<span class="l linked kept"[^>]*><span class="g">.*?</span> *(\w+):', dom)


def test_the_script_runs(file: Path) -> None:
    dom = dom_of(file)

    assert '<html lang="en" class="scripted">' in dom
    assert '<svg width="' in dom  # the picture of the first class


def test_a_kernel_that_is_selected_marks_what_it_stands_for(
    file: Path, figures: dict[str, Any]
) -> None:
    kernel, _ = [k for k in figures["kernels"] if k["fused"]]

    dom = dom_of(file, f"k{kernel['kernel']}")

    assert kept(dom) == [*kernel["replaces"], kernel["variable"]]
    panel = re.search(r'<aside id="panel".*?</aside>', dom, re.DOTALL)
    assert panel is not None
    said = Document(panel[0]).text()
    assert "stands for " + ", ".join(kernel["replaces"]) in said
    assert " → ".join(kernel["rules"]) in said


def test_a_class_that_is_selected_is_drawn(file: Path, figures: dict[str, Any]) -> None:
    made = next(c for c in figures["egraph"]["classes"] if len(c["nodes"]) > 2 and c["chosen"])

    dom = dom_of(file, f"k0&c{made['class']}")

    picture = re.search(r'<figure id="picture".*?</figure>', dom, re.DOTALL)
    assert picture is not None
    text = Document(picture[0]).text()
    assert f"c{made['class']} " in text
    assert f"● {made['nodes'][0]['text']}"[:50] in text
    operands = {k for node in made["nodes"] for k in node["classes"]}
    assert {f"#c{k}" for k in operands} <= set(re.findall(r'href="([^"]*)"', picture[0]))
    assert kept(dom)


def test_hostile_text_does_nothing_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "evil.html"
    mark = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"
    figures = explain(rx.parse(DENSE)).figures(quick=True)
    for kernel in figures["kernels"]:
        kernel["variable"], kernel["replaces"] = mark, [mark]
    for c in figures["egraph"]["classes"]:
        c["type"], c["nodes"][0]["text"] = mark, mark
    path.write_text(page_of(figures), "utf-8")

    dom = dom_of(path, "k0")

    assert "<title>An optimized module" in dom
    assert "<img" not in dom
