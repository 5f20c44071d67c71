"""Unused names."""


def unused(name: str, taken: set[str], numbers: dict[str, int] | None = None) -> str:
    """`name`, or the first of ``name1``, ``name2``... that is not `taken`; adds it to `taken`.

    `numbers` holds where earlier calls with the same `taken` stopped: the search continues there.
    """
    unique, number = name, 0 if numbers is None else numbers.get(name, 0)
    while unique in taken:
        number += 1
        unique = f"{name}{number}"
    if numbers is not None:
        numbers[name] = number
    taken.add(unique)
    return unique
