"""Names of the methods of visitors: one that is spelled another way would never be called."""

from typing import Any


class Visiting:
    """A base class of visitors.

    A subclass with a method such as ``visit_call_``, which differs from an inherited one by
    underscores alone, is a ``TypeError`` that names the right method.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = {n for base in cls.__mro__[1:] for n in vars(base) if n.startswith("visit_")}
        inherited = {_letters(name): name for name in names}
        for name in vars(cls):
            known = inherited.get(_letters(name), name)
            if known != name:
                raise TypeError(
                    f"{cls.__name__}.{name} would never be called: the method is {known}; "
                    f"super().{known}(…) visits what is below, as visit_expr_post_order of TVM"
                )


def _letters(name: str) -> str:
    return name.replace("_", "").lower()
