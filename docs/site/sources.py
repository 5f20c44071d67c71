"""The Markdown files that are pages of the site, and the links between them."""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^()\s]+)\)")
_CODE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1[ ]*$|(`+)(?!`)[^\n]*?(?<!`)\2(?!`)", re.M | re.S)


def rooms() -> dict[str, Path]:
    """The READMEs that are pages, too: by their place in the site, their files."""
    folders = ["rules", "editors", "extract", "lower", "vm"]
    folders += sorted(f"relax_egraph/{p.parent.name}" for p in _own_readmes())
    return {
        f"rooms/{folder.rpartition('/')[2]}.md": ROOT / folder / "README.md" for folder in folders
    }


def _own_readmes() -> Iterator[Path]:
    linked = {p.name for p in (ROOT / "relax_egraph").iterdir() if p.is_symlink()}
    return (p for p in (ROOT / "relax_egraph").glob("*/README.md") if p.parent.name not in linked)


def written() -> dict[str, Path]:
    """All pages that are written by hand: by their place in the site, their files."""
    own = {p.relative_to(DOCS).as_posix(): p for p in sorted(DOCS.rglob("*.md"))}
    return own | rooms()


def links(text: str) -> Iterator[str]:
    """The targets of the links in Markdown, but for those in code."""
    return (match["target"] for match in _LINK.finditer(_without_code(text)))


def _without_code(text: str) -> str:
    return _CODE.sub(lambda code: re.sub(r"[^\n`]", " ", code[0]), text)


def with_links(text: str, replace: Callable[[str, str], str]) -> str:
    """Markdown with each link, of a text to a target, replaced."""
    shadow, parts, last = _without_code(text), list[str](), 0
    for match in _LINK.finditer(shadow):
        start, end = match.span()
        shown = text[match.start("text") : match.end("text")]
        parts += [text[last:start], replace(shown, match["target"])]
        last = end
    return "".join((*parts, text[last:]))


def in_site(place: str, text: str) -> str:
    """The Markdown of the page at `place`, with links to files that are pages of the site.

    A link to another file of the repository is its text alone.
    """
    files = {file.resolve(): at for at, file in written().items()}
    here = written()[place].parent

    def replaced(shown: str, target: str) -> str:
        path, _, anchor = target.partition("#")
        if not path or "://" in path:
            return f"[{shown}]({target})"
        file = (here / path).resolve()
        if file.is_relative_to(DOCS / "reference"):  # generated
            at = file.relative_to(DOCS).as_posix()
        elif file in files:
            at = files[file]
        else:
            return shown
        to = posixpath.relpath(at, posixpath.dirname(place) or ".")
        return f"[{shown}]({to}{'#' if anchor else ''}{anchor})"

    return with_links(text, replaced)
