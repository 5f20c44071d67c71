"""The server: an editor asks by the Language Server Protocol, and other files here answer."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from relax_egraph.authoring.names import Name
from relax_egraph.authoring.questions import Answer, Kind
from relax_egraph.egraph.rulebook.formatting import formatted
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.errors import RuleError
from relax_egraph.lsp import messages
from relax_egraph.lsp.asking import Asking
from relax_egraph.lsp.completion import completions
from relax_egraph.lsp.cursor import cursor_at
from relax_egraph.lsp.edited import Edited
from relax_egraph.lsp.hover import hover
from relax_egraph.lsp.places import NotRenamed, definition, references, renamed
from relax_egraph.lsp.positions import offset_of


class _AtPlace(Protocol):
    """A request about a place in a file."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


class RuleServer(LanguageServer):
    """A language server for rule files; one that runs has one editor."""

    def __init__(self) -> None:
        super().__init__("relax-egraph", version("relax-egraph"))
        self.asking = Asking()
        self._edited: dict[str, tuple[int | None, Edited]] = {}

    def edited(self, uri: str) -> Edited:
        """The text of a file as it is in the editor."""
        document = self.workspace.get_text_document(uri)
        known = self._edited.get(uri)
        if known is None or known[0] != document.version or known[1].source.text != document.source:
            path = to_fs_path(uri)
            edited = Edited(Source(path or uri, document.source), Path(path) if path else None)
            known = self._edited[uri] = document.version, edited
        return known[1]

    def close_file(self, uri: str) -> None:
        """Forget a file, and what is asked of it."""
        if known := self._edited.pop(uri, None):
            self.asking.forget(known[1].source.name)

    def at(self, params: _AtPlace) -> tuple[Edited, int]:
        """The file and the offset that a request is about."""
        edited = self.edited(params.text_document.uri)
        return edited, offset_of(edited.source, params.position, self.codec)

    def name_at(self, params: _AtPlace) -> tuple[Edited, Name | None]:
        """The file and the name that a request is about."""
        edited, offset = self.at(params)
        return edited, edited.names.at(offset)

    @property
    def codec(self) -> messages.Codec:
        """How the editor counts the characters of a line."""
        return self.workspace.position_codec

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that are open in the editor."""
        workspace = self.workspace
        uris = [*workspace.folders] or [uri for uri in (workspace.root_uri,) if uri]
        return tuple(path for uri in uris if (path := to_fs_path(uri)))

    async def diagnose(self, uri: str) -> None:
        """Send the problems of a file, unless its text changes before that."""
        at = self.workspace.get_text_document(uri).version
        await asyncio.sleep(0)  # what was typed meanwhile is read first
        document = self.workspace.get_text_document(uri)
        if document.version != at:
            return
        edited = self.edited(uri)
        found = [
            *messages.problems(edited, self.codec),
            *messages.wrong_rules(edited, self.answers(edited), self.codec),
        ]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, at))

    def answers(self, edited: Edited) -> dict[tuple[Kind, str], Answer]:
        """What is known of the rules of a file, by kind of question and rule."""
        source = edited.source
        return {
            (question.kind, question.rule): answer
            for question, answer in self.asking.answers.items()
            if (question.file, question.text) == (source.name, source.text)
        }


async def _opened(ls: RuleServer, params: lsp.DidOpenTextDocumentParams) -> None:
    await ls.diagnose(params.text_document.uri)


async def _changed(ls: RuleServer, params: lsp.DidChangeTextDocumentParams) -> None:
    edited = ls.edited(params.text_document.uri)
    ls.asking.forget(edited.source.name, frozenset((edited.source.text,)))
    await ls.diagnose(params.text_document.uri)


def _closed(ls: RuleServer, params: lsp.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.close_file(uri)
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


def _hover(ls: RuleServer, params: lsp.HoverParams) -> lsp.Hover | None:
    edited, name = ls.name_at(params)
    if name is None or not (text := hover(edited.names, name, edited.diagnosis.rules)):
        return None
    return messages.hover(edited.source, name, text, ls.codec)


def _completion(ls: RuleServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    edited, offset = ls.at(params)
    cursor = cursor_at(edited.source, offset)
    found = completions(cursor, edited.names)
    place = edited.source, offset - len(cursor.word), offset
    return lsp.CompletionList(False, [messages.completion(c, place, ls.codec) for c in found])


def _signature(ls: RuleServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    edited, offset = ls.at(params)
    return messages.signature(cursor_at(edited.source, offset))


def _definition(ls: RuleServer, params: lsp.DefinitionParams) -> lsp.Location | None:
    edited, name = ls.name_at(params)
    place = name and definition(edited.names, name)
    return messages.location(place, ls.codec) if place else None


def _references(ls: RuleServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    edited, name = ls.name_at(params)
    places = references(edited.names, name, edited.family) if name else ()
    return [messages.location(place, ls.codec) for place in places]


def _highlights(ls: RuleServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
    edited, name = ls.name_at(params)
    uses = edited.names.of(name) if name else ()
    return [messages.highlight(edited.source, use, ls.codec) for use in uses]


def _prepare_rename(ls: RuleServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    edited, name = ls.name_at(params)
    return messages.range_of(edited.source, name.start, name.end, ls.codec) if name else None


def _rename(ls: RuleServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    edited, name = ls.name_at(params)
    if name is None:
        return None
    try:
        places = list(renamed(edited.names, name, params.new_name, edited.family))
    except NotRenamed as problem:
        raise JsonRpcInvalidParams(str(problem)) from None
    return messages.replaced(places, params.new_name, ls.codec)


def _symbols(ls: RuleServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    edited = ls.edited(params.text_document.uri)
    return [messages.symbol(edited, name, ls.codec) for name in edited.names.declared()]


def _formatting(ls: RuleServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
    source = ls.edited(params.text_document.uri).source
    try:
        text = formatted(source)
    except RuleError:
        return []  # a diagnostic says where it does not read
    whole = messages.range_of(source, 0, len(source.text), ls.codec)
    return [lsp.TextEdit(whole, text)] if text != source.text else []


def _actions(ls: RuleServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    edited = ls.edited(params.text_document.uri)
    return list(messages.fixes(edited, params, ls.codec))


def _lenses(ls: RuleServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    edited = ls.edited(params.text_document.uri)
    if edited.diagnosis.problems:
        return []
    return list(messages.lenses(edited, params.text_document.uri, ls.answers(edited), ls.codec))


async def _ask(ls: RuleServer, kind: Kind, uri: str, rule: str) -> str | None:
    """What is asked of a rule: shown in its lens, and the whole text as the result."""
    edited = ls.edited(uri)
    if all(name.text != rule for name in edited.rules):
        raise JsonRpcInvalidParams(f"{edited.source.name} has no rule {rule!r}")
    answer = await ls.asking.ask(edited.question(kind, rule, ls.folders))
    if answer is None:
        return None
    ls.window_log_message(lsp.LogMessageParams(lsp.MessageType.Info, answer.text))
    ls.workspace_code_lens_refresh(None)
    await ls.diagnose(uri)
    return answer.text


async def _check(ls: RuleServer, uri: str, rule: str) -> str | None:
    return await _ask(ls, "check", uri, rule)


async def _prove(ls: RuleServer, uri: str, rule: str) -> str | None:
    return await _ask(ls, "prove", uri, rule)


async def _fires(ls: RuleServer, uri: str, rule: str) -> str | None:
    return await _ask(ls, "fires", uri, rule)


def _shut_down(ls: RuleServer, params: None) -> None:
    ls.asking.close()


_FEATURES = {
    lsp.TEXT_DOCUMENT_DID_OPEN: (_opened, None),
    lsp.TEXT_DOCUMENT_DID_CHANGE: (_changed, None),
    lsp.TEXT_DOCUMENT_DID_CLOSE: (_closed, None),
    lsp.TEXT_DOCUMENT_HOVER: (_hover, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (
        _completion,
        lsp.CompletionOptions(trigger_characters=["(", ".", ":", '"']),
    ),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: (
        _signature,
        lsp.SignatureHelpOptions(trigger_characters=[" "]),
    ),
    lsp.TEXT_DOCUMENT_DEFINITION: (_definition, None),
    lsp.TEXT_DOCUMENT_REFERENCES: (_references, None),
    lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: (_highlights, None),
    lsp.TEXT_DOCUMENT_PREPARE_RENAME: (_prepare_rename, None),
    lsp.TEXT_DOCUMENT_RENAME: (_rename, lsp.RenameOptions(prepare_provider=True)),
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_symbols, None),
    lsp.TEXT_DOCUMENT_FORMATTING: (_formatting, None),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (
        _actions,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    ),
    lsp.TEXT_DOCUMENT_CODE_LENS: (_lenses, None),
    lsp.SHUTDOWN: (_shut_down, None),
}
"""What the server does for each request, with the options that it announces."""

_COMMANDS = {"check": _check, "prove": _prove, "fires": _fires}


def new_server() -> RuleServer:
    """A server; ``start_io`` lets it serve one editor, by standard input and output."""
    server = RuleServer()
    for name, (function, options) in _FEATURES.items():
        server.feature(name, options)(function)
    for name, command in _COMMANDS.items():
        server.command(f"relax-egraph.{name}")(command)
    return server
