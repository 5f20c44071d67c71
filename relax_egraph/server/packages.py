"""The packages of others that a server needs."""

from importlib.util import find_spec

_PACKAGES = ("starlette", "uvicorn", "prometheus_client")


def require_packages(who: str) -> None:
    """Raise ``ImportError`` with the remedy if one is not installed; `who` needs it."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        needed = f"{who} needs the packages {', '.join(missing)}"
        raise ImportError(f"{needed}: pip install 'relax-egraph[serve]'")
