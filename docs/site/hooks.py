"""The events of mkdocs that this site handles: ``mkdocs.yml`` names the file."""

from functools import cache
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.site import api, commands, notebooks, operators, rules, sources


@cache
def generated() -> dict[str, str]:
    """The generated pages, by their place in the site."""
    return {**api.pages(), **commands.pages(), **operators.pages(), **rules.pages()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have the navigation name the pages of each folder that is generated."""
    config.nav = _filled(config.nav)
    return config


def _filled(nav: Any) -> Any:
    match nav:
        case list():
            return [_filled(item) for item in nav]
        case dict():
            return {title: _filled(item) for title, item in nav.items()}
        case str() if nav.endswith("/"):
            return [place for place in generated() if place.startswith(nav)]
        case _:
            return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the READMEs of rooms, the generated pages, and lessons as notebooks."""
    for place, file in sources.rooms().items():
        files.append(File.generated(config, place, content=file.read_text("utf-8")))
    for place, text in (generated() | notebooks.lessons()).items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Have links lead to pages of the site, and rules coloured as Lisp."""
    place = page.file.src_uri
    text = sources.in_site(place, markdown) if place in sources.written() else markdown
    if place.startswith("tutorial/"):
        name = place.rpartition("/")[2].removesuffix(".md")
        text += f"\n[This lesson as a notebook]({name}.ipynb){{ download }}\n"
    return text.replace("```egg", "```lisp")
