"""Links between pages lead somewhere, the navigation has every page, the reference every name."""

import posixpath
import re
from collections.abc import Iterator
from functools import cache

import pytest

import relax_egraph as rx
from docs.site import api, commands, operators, rules, sources
from docs.site.mentions import BOOK, cases_by_rule
from relax_egraph.cli.group import MODULES
from relax_egraph.egraph.rulebook.scope import vocabulary

_, _, NAV = (sources.ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
NAVIGATION = re.findall(r"^ +- (?:[^:\n]+: )?([\w/.-]+(?:\.md|/))$", NAV, re.MULTILINE)


@cache
def generated() -> dict[str, str]:
    return {**api.pages(), **commands.pages(), **operators.pages(), **rules.pages()}


@cache
def pages() -> dict[str, str]:
    """Every page of the site, as it is rendered."""
    own = {
        place: sources.in_site(place, file.read_text("utf-8"))
        for place, file in sources.written().items()
    }
    return own | generated()


@cache
def anchors(place: str) -> frozenset[str]:
    """The anchors of the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", pages()[place], re.MULTILINE)
    return frozenset(map(_anchor, titles))


def _anchor(title: str) -> str:
    if stated := re.search(r"\{ #(\S+) \}$", title):
        return stated[1]
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def broken(place: str) -> Iterator[str]:
    for target in sources.links(pages()[place]):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        to = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
        if to not in pages() or (anchor and anchor not in anchors(to)):
            yield target


def test_links_between_pages_lead_somewhere() -> None:
    assert {place: list(broken(place)) for place in pages() if any(broken(place))} == {}


@pytest.mark.parametrize("place", sources.written())
def test_links_of_a_source_lead_to_files(place: str) -> None:
    file = sources.written()[place]
    local = {t.partition("#")[0] for t in sources.links(file.read_text("utf-8")) if "://" not in t}

    missing = {target for target in local - {""} if not (file.parent / target).exists()}

    assert {
        m for m in missing if f"reference/{m.rpartition('reference/')[2]}" not in pages()
    } == set()


def test_the_navigation_has_every_page_once() -> None:
    folders = tuple(place for place in NAVIGATION if place.endswith("/"))
    single = [place for place in NAVIGATION if place not in folders]

    assert len(set(NAVIGATION)) == len(NAVIGATION)
    assert sorted(single) == sorted(p for p in pages() if not p.startswith(folders))


def test_the_reference_has_every_name_of_the_facade() -> None:
    (page,) = api.pages().values()

    assert set(re.findall(r"(?:^### |heading: )rx\.(\w+)(?:,|$)", page, re.M)) == set(
        vars(rx)["__all__"]
    )


def test_the_reference_has_every_command() -> None:
    (page,) = commands.pages().values()

    assert set(re.findall(r"^## relax-egraph ([\w-]+)$", page, re.MULTILINE)) == set(MODULES)


def test_the_reference_has_every_name_of_the_vocabulary() -> None:
    text = "\n".join(operators.pages().values())

    listed = re.findall(r"^## (\S+) \{ #", text, re.MULTILINE)

    assert sorted(listed) == sorted(declaration.name for declaration in vocabulary())


def test_the_reference_has_every_rule_with_its_family_and_a_test() -> None:
    listed = [
        (place.removeprefix(rules.FOLDER).removesuffix(".md"), name)
        for place, page in rules.pages().items()
        for name in re.findall(r"^## (\S+) \{ #", page, re.MULTILINE)
    ]

    assert sorted(listed) == sorted((rule.ruleset, rule.name) for rule in BOOK.rules)
    assert {rule.name for rule in BOOK.rules} <= set(cases_by_rule())
