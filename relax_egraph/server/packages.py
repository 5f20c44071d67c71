"""The packages of others that a server needs."""

from collections.abc import Sequence
from importlib.util import find_spec

HTTP = ("starlette", "uvicorn", "prometheus_client")
GRPC = ("grpc", "google.protobuf")


def require_packages(who: str, packages: Sequence[str] = HTTP) -> None:
    """Raise ``ImportError`` with the remedy if one is not installed; `who` needs it."""
    if missing := [name for name in packages if not _is_there(name)]:
        needed = f"{who} needs the packages {', '.join(missing)}"
        raise ImportError(f"{needed}: pip install 'relax-egraph[serve]'")


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False
