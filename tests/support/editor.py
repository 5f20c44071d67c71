"""An editor for tests: it starts the language server, and speaks its protocol."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient


def _ignore(_: object) -> None:
    pass


class Editor:
    """A client with one file; `diagnostics` are those that came last, by version."""

    def __init__(self, client: LanguageClient, path: Path) -> None:
        self.client = client
        self.uri = path.as_uri()
        self.version = 0
        self.text = ""
        self._published: dict[int | None, asyncio.Future[list[lsp.Diagnostic]]] = {}
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._receive))
        for message in (lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.WINDOW_LOG_MESSAGE):
            client.feature(message)(partial(_ignore))

    def _receive(self, params: lsp.PublishDiagnosticsParams) -> None:
        arrived = self._at(params.version)
        if arrived.done():
            self._published[params.version] = arrived = asyncio.Future()
        arrived.set_result(list(params.diagnostics))

    def _at(self, version: int | None) -> asyncio.Future[list[lsp.Diagnostic]]:
        return self._published.setdefault(version, asyncio.Future())

    async def open(self, text: str) -> list[str]:
        """Open the file with a text; returns its diagnostics."""
        self.text, self.version = text, 1
        item = lsp.TextDocumentItem(self.uri, "egg", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    def type(self, start: int, end: int, text: str) -> None:
        """Put `text` between two offsets, as an incremental change."""
        where = lsp.Range(self.position(start), self.position(end))
        self.text = self.text[:start] + text + self.text[end:]
        self.version += 1
        document = lsp.VersionedTextDocumentIdentifier(self.version, self.uri)
        change = lsp.TextDocumentContentChangePartial(where, text)
        params = lsp.DidChangeTextDocumentParams(document, [change])
        self.client.text_document_did_change(params)

    async def diagnostics(self) -> list[str]:
        """The diagnostics of this version: line, text that is marked, first line of the message."""
        found = await asyncio.wait_for(self._at(self.version), 60)
        return [self._shown(d) for d in found]

    def _shown(self, diagnostic: lsp.Diagnostic) -> str:
        start, end = map(self.offset, (diagnostic.range.start, diagnostic.range.end))
        message = diagnostic.message.splitlines()[0]
        return f"{diagnostic.range.start.line + 1}: {self.text[start:end]}: {message}"

    def position(self, offset: int) -> lsp.Position:
        """A position of the protocol: columns are code units of UTF-16."""
        before = self.text[:offset].split("\n")
        return lsp.Position(len(before) - 1, len(before[-1].encode("utf-16-le")) // 2)

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position."""
        lines = self.text.split("\n")
        before = sum(len(line) + 1 for line in lines[: position.line])
        units = lines[position.line].encode("utf-16-le")[: 2 * position.character]
        return before + len(units.decode("utf-16-le"))

    def at(self, needle: str, within: int = 0) -> Any:
        """The document and a position `within` the first occurrence of a text, as keywords."""
        offset = self.text.index(needle) + within
        return {
            "text_document": lsp.TextDocumentIdentifier(self.uri),
            "position": self.position(offset),
        }


@asynccontextmanager
async def editing(path: Path, *, folder: Path | None = None) -> AsyncGenerator[Editor]:
    """An editor with the file at `path`, beside a server that runs until the block ends."""
    client = LanguageClient("tests", "1")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    await client.start_io(sys.executable, "-m", "relax_egraph", "lsp", env=environment)
    folders = [lsp.WorkspaceFolder((folder or path.parent).as_uri(), "tests")]
    capabilities = lsp.ClientCapabilities()
    await client.initialize_async(
        lsp.InitializeParams(capabilities, root_uri=folders[0].uri, workspace_folders=folders)
    )
    client.initialized(lsp.InitializedParams())
    try:
        yield Editor(client, path)
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
