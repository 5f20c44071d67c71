"""Offsets in a text, and positions as an editor counts them: lines, and code units in a line."""

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from relax_egraph.egraph.rulebook.forms import Source

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec


def offset_of(source: Source, position: lsp.Position, codec: "PositionCodec") -> int:
    """The offset of a position; one behind the end of a line is at its end."""
    lines = source.text.count("\n")
    if position.line > lines:
        return len(source.text)
    start = source.line_start(position.line)
    end = source.line_start(position.line + 1) - 1 if position.line < lines else len(source.text)
    units = 0
    for offset in range(start, end):
        if units >= position.character:
            return offset
        units += codec.client_num_units(source.text[offset])
    return end


def position_of(source: Source, offset: int, codec: "PositionCodec") -> lsp.Position:
    """The position of an offset."""
    line, column = source.place(offset)
    return lsp.Position(line, codec.client_num_units(source.text[offset - column : offset]))


def range_of(source: Source, start: int, end: int, codec: "PositionCodec") -> lsp.Range:
    """The range between two offsets."""
    return lsp.Range(position_of(source, start, codec), position_of(source, end, codec))
