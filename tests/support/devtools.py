"""A page in headless Chromium that a test types into, by the DevTools protocol over two pipes."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.browser import OPTIONS, browser

WAIT = 60.0
"""Seconds until what a test waits for must be there."""


class Page:
    """A page of a browser that runs."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, address: str) -> None:
        """Load an address."""
        self.call("Page.navigate", url=address)

    def value(self, script: str) -> Any:
        """The value of an expression of JavaScript, which may be a promise."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, script: str, seconds: float = WAIT) -> Any:
        """The value of an expression as soon as it is true; an element is an empty object."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (found := self.value(script)) not in (None, False, "", 0):
                return found
            time.sleep(0.05)
        raise AssertionError(
            f"not in {seconds:g} s: {script}; {self.value('document.body.innerText')}"
        )

    def write(self, field: str, text: str) -> None:
        """Replace the text of a field, as if it was pasted."""
        self.value(f"document.querySelector({json.dumps(field)}).select()")
        self.value(f"document.querySelector({json.dumps(field)}).focus()")
        self.call("Input.insertText", text=text)

    def scheme(self, name: str) -> None:
        """Have the page in ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path) -> None:
        """Write a screenshot."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def faults(self) -> list[str]:
        """The errors in the console so far, and exceptions that nothing caught."""
        self.value("0")
        texts: list[str] = []
        for event in self.events:
            match event:
                case {"method": "Runtime.exceptionThrown", "params": params}:
                    texts.append(json.dumps(params["exceptionDetails"]))
                case {"method": "Log.entryAdded", "params": {"entry": {"level": "error"} as entry}}:
                    texts.append(f"{entry['text']} {entry.get('url', '')}")
                case _:
                    pass
        return texts

    def addresses(self) -> set[str]:
        """What the page has requested so far."""
        self.value("0")
        sent = (e["params"] for e in self.events if e.get("method") == "Network.requestWillBeSent")
        return {params["request"]["url"] for params in sent}

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._of, 1 << 16)
            assert part, "the browser ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


_AT_3_AND_4 = """
import os, sys
from fcntl import F_DUPFD, fcntl
pipes = [fcntl(int(pipe), F_DUPFD, 10) for pipe in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A program that runs another one, which has the pipes where Chromium looks for them."""


@contextmanager
def page(folder: Path, width: int = 1500, height: int = 1000) -> Generator[Page]:
    """A page, until the context is left; skips the test if there is no browser."""
    program = browser()
    commands, to = os.pipe()
    of, answers = os.pipe()
    options = (*OPTIONS, "--remote-debugging-pipe", f"--window-size={width},{height}")
    command = [program, *options, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(
        [sys.executable, "-c", _AT_3_AND_4, str(commands), str(answers), *command],
        pass_fds=(commands, answers),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(answers)
    try:
        one = Page(to, of)
        yield one
        with suppress(OSError):
            os.write(to, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            process.wait(10)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(of)
