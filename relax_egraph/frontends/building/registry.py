"""Registries of converters, one for each front door."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Converter = TypeVar("Converter")


class Registry(Generic[Key, Converter]):
    """Converters by what they convert."""

    def __init__(self) -> None:
        self._converters: dict[Key, Converter] = {}

    def converts(self, *keys: Key) -> Callable[[Converter], Converter]:
        """Decorator: register the converter of `keys`, none of which may have one."""

        def define(converter: Converter) -> Converter:
            for key in keys:
                if key in self._converters:
                    raise ValueError(f"two functions convert {key}")
                self._converters[key] = converter
            return converter

        return define

    def converter_of(self, key: Key) -> Converter | None:
        """The converter of `key`, if there is one."""
        return self._converters.get(key)

    def converted(self) -> dict[Key, Converter]:
        """The converters by their keys, in the order of registration."""
        return dict(self._converters)
