"""Names of models as identifiers."""

import re
from keyword import iskeyword

_NO_WORD = re.compile(r"\W+", re.ASCII)


def identifier(name: str) -> str:
    """`name` as an identifier: ``/layer.0/Add_output_0`` becomes ``layer_0_Add_output_0``."""
    word = _NO_WORD.sub("_", name).strip("_") or "value"
    return f"v{word}" if word[0].isdigit() or iskeyword(word) else word
