"""The packed functions ``vm.builtin.*`` of every machine; a file for each subject."""

from collections.abc import Mapping

from relax_egraph.vm.builtins.builtin import Builtin as Builtin
from relax_egraph.vm.builtins.builtin import Packed as Packed
from relax_egraph.vm.builtins.calls import CALLS
from relax_egraph.vm.builtins.calls import invoke_closure as invoke_closure
from relax_egraph.vm.builtins.checks import CHECKS
from relax_egraph.vm.builtins.control import CONTROL
from relax_egraph.vm.builtins.data import DATA
from relax_egraph.vm.builtins.kv_cache import KV_CACHE
from relax_egraph.vm.builtins.memory import MEMORY
from relax_egraph.vm.builtins.memory import copy as copy
from relax_egraph.vm.builtins.random import RANDOM
from relax_egraph.vm.builtins.sequences import SEQUENCES
from relax_egraph.vm.builtins.shapes import MAX_HEAP as MAX_HEAP
from relax_egraph.vm.builtins.shapes import SHAPES

SUBJECTS: Mapping[str, tuple[Builtin, ...]] = {
    "Shapes": SHAPES,
    "Checks": CHECKS,
    "Memory": MEMORY,
    "Data": DATA,
    "Sequences": SEQUENCES,
    "Calls": CALLS,
    "Control": CONTROL,
    "Random numbers": RANDOM,
    "Caches": KV_CACHE,
}

BUILTINS: Mapping[str, Builtin] = {
    f"vm.builtin.{builtin.name}": builtin for some in SUBJECTS.values() for builtin in some
}
"""The builtins, by name in bytecode."""
