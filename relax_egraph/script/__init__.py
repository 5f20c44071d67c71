"""Modules as text, in the dialect of TVMScript: parse, print, save, load.

In Python files scripts are written with ``from relax_egraph.script import ir as I, relax as R,
tir as T``.
"""

from relax_egraph.ir.text import print_with
from relax_egraph.script.parser import parse as parse
from relax_egraph.script.parts import print_part
from relax_egraph.script.printer import print_module as print_module
from relax_egraph.script.storage import load_module as load_module
from relax_egraph.script.storage import save_module as save_module

print_with(print_part)
