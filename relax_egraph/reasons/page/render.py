"""Figures as one page of HTML that needs no network and is readable without its script.

All text comes from programs and rule files, which are not trusted: it is escaped.
"""

import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
    from markupsafe import Markup
except ModuleNotFoundError:
    needed = "a page of HTML needs the package jinja2: pip install 'relax-egraph[html]'"
    raise ImportError(needed) from None

from relax_egraph.optimize.sizes import assumed_text
from relax_egraph.reasons.figures import base
from relax_egraph.reasons.page.charts import bars, timeline
from relax_egraph.reasons.times import step_text, time_text

_HERE = Path(__file__).parent

OPEN_KINDS = 40
"""Up to this number, kernels are listed one by one; above it, kernels of one kind are folded."""

MOST_TIMELINES = 12
"""The most time lines on a page; all regions are in the table."""

MOST_STEPS = 400
"""The most steps of one proof on a page."""


def page_of(figures: Mapping[str, Any], title: str = "") -> str:
    """The page for `figures` from `figures_of`."""
    every = bars(figures)
    idle = [bar for bar in every if bar.is_idle]
    return _template().render(
        title=title,
        f=figures,
        kinds=_kinds(figures["kernels"]),
        open_kinds=len(figures["kernels"]) <= OPEN_KINDS,
        bars=[bar for bar in every if not bar.is_idle],
        idle=idle,
        in_table={bar.rule["rule"] for bar in every},
        timelines=[timeline(region) for region in figures["regions"][:MOST_TIMELINES]],
        most_steps=MOST_STEPS,
        style=_file("style.css"),
        script=_file("script.js"),
        data=_json({"kernels": figures["kernels"], "egraph": figures["egraph"]["classes"]}),
    )


def framed(page: str) -> str:
    """`page` in a sandboxed frame, for a notebook."""
    style = "width:100%;height:48rem;border:1px solid #8888"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_HERE, "utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": time_text, "steps": step_text, "base": base}
    environment.filters["assumed"] = assumed_text
    return environment.get_template("page.html")


def _file(name: str) -> Markup:
    return Markup((_HERE / name).read_text("utf-8"))


def _json(data: object) -> Markup:
    """`data` as JSON for a script element, escaped so that no text in it ends the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _kinds(kernels: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The kernels, grouped by callee."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for kernel in kernels:
        groups.setdefault(kernel["calls"], []).append(kernel)
    return list(groups.values())
