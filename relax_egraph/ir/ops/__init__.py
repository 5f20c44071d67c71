"""The operators, one module for each family; importing this package defines them all."""

from relax_egraph.ir.ops import broadcast as broadcast
from relax_egraph.ir.ops import call as call
from relax_egraph.ir.ops import dynamic as dynamic
from relax_egraph.ir.ops import linear_algebra as linear_algebra
from relax_egraph.ir.ops import manipulate as manipulate
from relax_egraph.ir.ops import memory as memory
from relax_egraph.ir.ops import nn as nn
from relax_egraph.ir.ops import reduce as reduce
from relax_egraph.ir.ops import vm as vm
