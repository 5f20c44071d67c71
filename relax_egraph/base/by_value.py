"""Values with functions as bytes, for a process that does not import the script of the user."""

from typing import Any

import cloudpickle


def dumped(value: object) -> bytes:
    """`value`, pickled: functions by value, but those of installed modules by name."""
    return cloudpickle.dumps(value)


def loaded(code: bytes) -> Any:
    """The value in `code`."""
    return cloudpickle.loads(code)
