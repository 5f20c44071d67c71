"""Messages on a pipe: the length, then the bytes.

The streams have no buffers: a buffer has a lock, which one thread may hold while another one forks.
"""

from struct import Struct
from typing import BinaryIO

_LENGTH = Struct("<Q")


def send(stream: BinaryIO, message: bytes) -> None:
    """Write `message` to a pipe."""
    rest = memoryview(_LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[stream.write(rest) :]


def receive(stream: BinaryIO) -> bytes:
    """The next message on a pipe; raises ``EOFError`` at its end."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    parts = list[bytes]()
    while length:
        part = stream.read(length)
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
