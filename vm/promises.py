"""What the optimizer promised of kernels, and what was built: in the metadata of an executable."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from relax_egraph.errors import ExecutableError

KEY = "promises"
"""The name of the text in `Executable.metadata`."""


@dataclass(frozen=True, slots=True)
class KernelPromise:
    """A kernel was to have the schedule `anchor` and to take `seconds`; it has `schedule`.

    The time is that at the sizes that the optimizer assumed.
    """

    anchor: str
    seconds: float
    schedule: str

    @property
    def is_kept(self) -> bool:
        """Whether the kernel has the schedule that was paid for."""
        return self.anchor == self.schedule


def promises_text(promises: Mapping[str, KernelPromise]) -> str:
    """`promises` by the names of kernels, for the metadata."""
    return json.dumps({name: astuple(promise) for name, promise in promises.items()})


def promises_of(metadata: Mapping[str, str]) -> dict[str, KernelPromise]:
    """The promises in `metadata`; raises `ExecutableError` for a text that is none of ours."""
    try:
        rows = json.loads(metadata.get(KEY, "{}"))
        return {
            name: KernelPromise(str(anchor), float(seconds), str(schedule))
            for name, (anchor, seconds, schedule) in rows.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise ExecutableError(f"metadata {KEY}: {error}") from None
