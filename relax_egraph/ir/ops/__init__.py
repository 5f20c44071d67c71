"""The operators, one module for each family; importing this package defines them all."""

from relax_egraph.ir.ops import activation as activation
from relax_egraph.ir.ops import attention as attention
from relax_egraph.ir.ops import binary as binary
from relax_egraph.ir.ops import call as call
from relax_egraph.ir.ops import conv as conv
from relax_egraph.ir.ops import create as create
from relax_egraph.ir.ops import dynamic as dynamic
from relax_egraph.ir.ops import image as image
from relax_egraph.ir.ops import index as index
from relax_egraph.ir.ops import join as join
from relax_egraph.ir.ops import linear_algebra as linear_algebra
from relax_egraph.ir.ops import loss as loss
from relax_egraph.ir.ops import manipulate as manipulate
from relax_egraph.ir.ops import memory as memory
from relax_egraph.ir.ops import norm as norm
from relax_egraph.ir.ops import pool as pool
from relax_egraph.ir.ops import quantize as quantize
from relax_egraph.ir.ops import reduce as reduce
from relax_egraph.ir.ops import sampling as sampling
from relax_egraph.ir.ops import scan as scan
from relax_egraph.ir.ops import search as search
from relax_egraph.ir.ops import sort as sort
from relax_egraph.ir.ops import unary as unary
from relax_egraph.ir.ops import vm as vm
