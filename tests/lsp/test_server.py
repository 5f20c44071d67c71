"""A rule file in an editor: what the server says while it is written."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from tests.support.editor import Editor, editing

RULES = """\
; x · (y / x) = y, which is wrong for 0
; float: exact
(rewrite (R.multiply x (R.divide y x)) y :name "divide-back")

; a table of what was squared
(relation squared (Tensor Tensor))

; x · x is squared
; float: exact
(rule ((= y (R.multiply x x))) ((squared y x)) :name "squares")

; √(x²) = |x|
; float: reassociates
(rewrite (R.sqrt y) (R.abs x)
  :when ((squared y x)) :name "root-of-what-was-squared")
"""


def in_editor(path: Path, act: Callable[[Editor], Awaitable[None]]) -> None:
    """Let `act` use an editor with the file at `path`."""

    async def run() -> None:
        async with editing(path) as editor:
            await act(editor)

    asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my.egg"


def test_errors_are_shown_as_they_are_made(path: Path) -> None:
    async def act(editor: Editor) -> None:
        assert await editor.open(RULES) == []

        at = editor.text.index("divide y")
        editor.type(at, at + len("divide"), "divied")
        assert await editor.diagnostics() == ["3: R.divied: unknown operator R.divied"]

        fix = await editor.client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(editor.uri),
                lsp.Range(editor.position(at), editor.position(at)),
                lsp.CodeActionContext([]),
            )
        )
        assert fix
        assert [action.title for action in fix] == ["change it to R.divide"]

        editor.type(at, at + len("divied"), "divide")
        assert await editor.diagnostics() == []

        at = editor.text.index(' :name "squares")')
        editor.type(at, len(editor.text), "")
        assert await editor.diagnostics() == ["10: (rule: this '(' is never closed"]

    in_editor(path, act)


def test_an_editor_counts_code_units(path: Path) -> None:
    async def act(editor: Editor) -> None:
        text = '(rewrite (R.foo x "𝔵𝔶") (R.bar x) :name "wide")\n'

        assert await editor.open(text) == [
            "1: R.foo: unknown operator R.foo",
            "1: R.bar: unknown operator R.bar",
        ]

    in_editor(path, act)


def test_names_are_explained_found_and_renamed(path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open(RULES)
        client = editor.client

        hover = await client.text_document_hover_async(
            lsp.HoverParams(**editor.at("(squared y", 3))
        )
        assert hover
        assert isinstance(hover.contents, lsp.MarkupContent)
        assert "a table of what was squared" in hover.contents.value
        assert "made by 1 rule: squares" in hover.contents.value
        assert "read by 1 rule: root-of-what-was-squared" in hover.contents.value

        found = await client.text_document_definition_async(
            lsp.DefinitionParams(**editor.at('((squared y x)) :name "root', 4))
        )
        assert isinstance(found, lsp.Location)
        assert editor.offset(found.range.start) == editor.text.index("squared (Tensor")

        edit = await client.text_document_rename_async(
            lsp.RenameParams(new_name="square-of", **editor.at("squared (Tensor"))
        )
        assert edit
        assert edit.changes
        assert [e.new_text for e in edit.changes[editor.uri]] == ["square-of"] * 3

        symbols = await client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(editor.uri))
        )
        assert symbols
        assert [s.name for s in symbols] == [
            "divide-back",
            "squared",
            "squares",
            "root-of-what-was-squared",
        ]

    in_editor(path, act)


def test_a_name_of_the_vocabulary_keeps_its_name(path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open(RULES)
        with pytest.raises(Exception, match=r"R\.sqrt is part of the vocabulary"):
            await editor.client.text_document_rename_async(
                lsp.RenameParams(new_name="R.root", **editor.at("R.sqrt"))
            )

    in_editor(path, act)


def test_names_are_completed_where_they_fit(path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("(rewrite (R.sq")
        place = editor.at("R.sq", 4)

        found = await editor.client.text_document_completion_async(lsp.CompletionParams(**place))

        assert isinstance(found, lsp.CompletionList)
        edits = {c.label: c.text_edit.new_text for c in found.items if c.text_edit}
        assert edits["R.sqrt"] == "R.sqrt ${1:x}"
        assert edits["R.squeeze"] == "R.squeeze ${1:x} ${2:axis}"

    in_editor(path, act)


def test_a_file_is_formatted(path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open('(rewrite (R.sqrt\n(R.multiply x x)) (R.abs x)\n:name "root")\n')

        edits = await editor.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(
                lsp.TextDocumentIdentifier(editor.uri), lsp.FormattingOptions(2, True)
            )
        )

        assert edits
        assert [e.new_text for e in edits] == [
            '(rewrite (R.sqrt\n           (R.multiply x x)) (R.abs x)\n  :name "root")\n'
        ]

    in_editor(path, act)


def test_a_lens_checks_a_rule(path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open(RULES)

        assert await lenses(editor) == ["check", "prove", "where it fires"] * 3

        text = await command(editor, "check", "divide-back")

        assert text
        assert "divide-back" in text
        assert "left is nan, right is 0.0" in text
        assert (await lenses(editor))[:3] == ["check: unsound", "prove", "where it fires"]
        assert await editor.diagnostics() != []

        at = editor.text.index("R.sqrt")
        editor.type(at, at, " ")
        await editor.diagnostics()
        assert (await lenses(editor))[:1] == ["check"]

    in_editor(path, act)


def test_a_check_of_an_old_text_is_ended(path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open(RULES)
        asked = asyncio.ensure_future(command(editor, "check", "root-of-what-was-squared"))
        await asyncio.sleep(0.1)

        editor.type(0, 0, "\n")

        assert await editor.diagnostics() == []
        assert await asyncio.wait_for(asked, 30) is None

    in_editor(path, act)


async def command(editor: Editor, name: str, rule: str) -> str | None:
    """The result of a command on a rule."""
    return await editor.client.workspace_execute_command_async(
        lsp.ExecuteCommandParams(f"relax-egraph.{name}", [editor.uri, rule])
    )


async def lenses(editor: Editor) -> list[str]:
    """The titles of the lenses, in order."""
    found = await editor.client.text_document_code_lens_async(
        lsp.CodeLensParams(lsp.TextDocumentIdentifier(editor.uri))
    )
    return [lens.command.title for lens in found or () if lens.command]
