"""What the files of this room find, as messages of the protocol."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from relax_egraph.authoring.names import Kind as KindOfName
from relax_egraph.authoring.names import Name
from relax_egraph.authoring.questions import Answer, Kind
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.lsp.book import known_names
from relax_egraph.lsp.completion import Completion, Shown
from relax_egraph.lsp.cursor import Cursor
from relax_egraph.lsp.edited import Edited
from relax_egraph.lsp.places import Place
from relax_egraph.lsp.positions import position_of, range_of

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec as Codec
else:
    Codec: TypeAlias = object

_SOURCE = "relax-egraph"


def problems(edited: Edited, codec: Codec) -> Iterator[lsp.Diagnostic]:
    """The errors of the loader."""
    for problem in edited.diagnosis.problems:
        where = range_of(edited.source, problem.start, problem.end, codec)
        error = lsp.DiagnosticSeverity.Error
        yield lsp.Diagnostic(where, problem.message, error, source=_SOURCE)


def wrong_rules(
    edited: Edited, answers: Mapping[tuple[Kind, str], Answer], codec: Codec
) -> Iterator[lsp.Diagnostic]:
    """The rules of which a check or a proof found that they are wrong."""
    for name in edited.rules:
        for kind in ("check", "prove"):
            answer = answers.get((kind, name.text))
            if answer and answer.is_wrong:
                where = range_of(edited.source, name.start, name.end, codec)
                warning = lsp.DiagnosticSeverity.Warning
                source = f"{_SOURCE} {kind}"
                yield lsp.Diagnostic(where, answer.text, warning, source=source)


def hover(source: Source, name: Name, text: str, codec: Codec) -> lsp.Hover:
    """What a name is."""
    shown = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
    return lsp.Hover(shown, range_of(source, name.start, name.end, codec))


_SHOWN: Mapping[Shown, lsp.CompletionItemKind] = {
    "operator": lsp.CompletionItemKind.Function,
    "fact": lsp.CompletionItemKind.Interface,
    "keyword": lsp.CompletionItemKind.Keyword,
    "variable": lsp.CompletionItemKind.Variable,
    "value": lsp.CompletionItemKind.Value,
    "ruleset": lsp.CompletionItemKind.Module,
}


def completion(one: Completion, place: tuple[Source, int, int], codec: Codec) -> lsp.CompletionItem:
    """A completion of the text at `place`."""
    known = known_names().get(one.word)
    return lsp.CompletionItem(
        one.word,
        kind=_SHOWN[one.shown],
        detail=one.detail or None,
        documentation=known.meaning if known else None,
        sort_text=f"{one.order}{one.word}",
        insert_text_format=lsp.InsertTextFormat.Snippet,
        text_edit=lsp.TextEdit(range_of(*place, codec), one.snippet),
    )


def signature(cursor: Cursor) -> lsp.SignatureHelp | None:
    """The arguments of the innermost form, and which of them is next."""
    applied = cursor.around[-1] if cursor.around else None
    declared = known_names().get(applied.head) if applied else None
    if applied is None or declared is None or applied.items < 0:
        return None
    params = [lsp.ParameterInformation(f"{p.name}:{p.sort}") for p in declared.params]
    shown = lsp.SignatureInformation(
        f"{declared.usage} → {declared.result}", declared.meaning, params, applied.items
    )
    return lsp.SignatureHelp([shown], 0, applied.items)


def location(place: Place, codec: Codec) -> lsp.Location:
    """A part of a file."""
    return lsp.Location(_uri(place.source), range_of(place.source, place.start, place.end, codec))


def _uri(source: Source) -> str:
    """The address of a file; its name is a path, or that address."""
    path = Path(source.name)
    return (from_fs_path(str(path)) if path.is_absolute() else None) or source.name


def highlight(source: Source, name: Name, codec: Codec) -> lsp.DocumentHighlight:
    """An occurrence of a name."""
    kind = lsp.DocumentHighlightKind.Write if name.declares else lsp.DocumentHighlightKind.Read
    return lsp.DocumentHighlight(range_of(source, name.start, name.end, codec), kind)


def replaced(places: Sequence[Place], text: str, codec: Codec) -> lsp.WorkspaceEdit:
    """An edit of several files that puts `text` in `places`."""
    changes: dict[str, list[lsp.TextEdit]] = {}
    for place in places:
        where = range_of(place.source, place.start, place.end, codec)
        changes.setdefault(_uri(place.source), []).append(lsp.TextEdit(where, text))
    return lsp.WorkspaceEdit(changes)


_SYMBOLS: Mapping[KindOfName, lsp.SymbolKind] = {
    "rule": lsp.SymbolKind.Event,
    "table": lsp.SymbolKind.Interface,
    "sort": lsp.SymbolKind.Struct,
    "ruleset": lsp.SymbolKind.Module,
    "variable": lsp.SymbolKind.Variable,
}


def symbol(edited: Edited, name: Name, codec: Codec) -> lsp.DocumentSymbol:
    """A declaration, with the form that it is in."""
    source = edited.source
    rule = edited.diagnosis.rules.get(name.text) if name.kind == "rule" else None
    law = rule.law if rule else " ".join(source.comment_above(name.form))
    whole = range_of(source, name.form.start, name.form.end, codec)
    own = range_of(source, name.start, name.end, codec)
    return lsp.DocumentSymbol(name.text, _SYMBOLS[name.kind], whole, own, law or None)


def fixes(edited: Edited, params: lsp.CodeActionParams, codec: Codec) -> Iterator[lsp.CodeAction]:
    """The known names that are near to unknown ones, where an editor asks."""
    source, uri = edited.source, params.text_document.uri
    for problem in edited.diagnosis.problems:
        where = range_of(source, problem.start, problem.end, codec)
        first, last = params.range.start, params.range.end
        if problem.better and where.start <= last and first <= where.end:
            edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(where, problem.better)]})
            title = f"change it to {problem.better}"
            yield lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, edit=edit, is_preferred=True)


_LENSES: Mapping[Kind, str] = {
    "check": "check",
    "prove": "prove",
    "fires": "where it fires",
}


def lenses(
    edited: Edited, uri: str, answers: Mapping[tuple[Kind, str], Answer], codec: Codec
) -> Iterable[lsp.CodeLens]:
    """What may be asked of each rule, or what is known of it."""
    for name in edited.rules:
        at = position_of(edited.source, name.form.start, codec)
        for kind, title in _LENSES.items():
            if answer := answers.get((kind, name.text)):
                title = answer.words if kind == "fires" else f"{kind}: {answer.words}"
            arguments = [uri, name.text]
            command = lsp.Command(title, f"{_SOURCE}.{kind}", arguments=arguments)
            yield lsp.CodeLens(lsp.Range(at, at), command)
