"""Tensor expressions: kernels written by users as functions of indices.

A = te.placeholder((n, 64), "float32", name="A")
k = te.reduce_axis(64)
B = te.compute((n,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="B")
f = te.create_prim_func(A, B)
"""

from relax_egraph.tir.block_builder import te_tensor as te_tensor
from relax_egraph.tir.call_te import call_te as call_te
from relax_egraph.tir.create_prim_func import create_prim_func as create_prim_func
from relax_egraph.tir.scalar import abs as abs
from relax_egraph.tir.scalar import acos as acos
from relax_egraph.tir.scalar import acosh as acosh
from relax_egraph.tir.scalar import asin as asin
from relax_egraph.tir.scalar import asinh as asinh
from relax_egraph.tir.scalar import atan as atan
from relax_egraph.tir.scalar import atan2 as atan2
from relax_egraph.tir.scalar import atanh as atanh
from relax_egraph.tir.scalar import bitwise_and as bitwise_and
from relax_egraph.tir.scalar import bitwise_not as bitwise_not
from relax_egraph.tir.scalar import bitwise_or as bitwise_or
from relax_egraph.tir.scalar import bitwise_xor as bitwise_xor
from relax_egraph.tir.scalar import cast as cast
from relax_egraph.tir.scalar import ceil as ceil
from relax_egraph.tir.scalar import const as const
from relax_egraph.tir.scalar import copysign as copysign
from relax_egraph.tir.scalar import cos as cos
from relax_egraph.tir.scalar import cosh as cosh
from relax_egraph.tir.scalar import equal as equal
from relax_egraph.tir.scalar import erf as erf
from relax_egraph.tir.scalar import exp as exp
from relax_egraph.tir.scalar import exp_nonpositive as exp_nonpositive
from relax_egraph.tir.scalar import expm1 as expm1
from relax_egraph.tir.scalar import floor as floor
from relax_egraph.tir.scalar import fma as fma
from relax_egraph.tir.scalar import fmod as fmod
from relax_egraph.tir.scalar import if_then_else as if_then_else
from relax_egraph.tir.scalar import isfinite as isfinite
from relax_egraph.tir.scalar import isinf as isinf
from relax_egraph.tir.scalar import isnan as isnan
from relax_egraph.tir.scalar import log as log
from relax_egraph.tir.scalar import log1p as log1p
from relax_egraph.tir.scalar import logical_and as logical_and
from relax_egraph.tir.scalar import logical_not as logical_not
from relax_egraph.tir.scalar import logical_or as logical_or
from relax_egraph.tir.scalar import maximum as maximum
from relax_egraph.tir.scalar import minimum as minimum
from relax_egraph.tir.scalar import nearbyint as nearbyint
from relax_egraph.tir.scalar import not_equal as not_equal
from relax_egraph.tir.scalar import pow as pow
from relax_egraph.tir.scalar import round as round
from relax_egraph.tir.scalar import rsqrt as rsqrt
from relax_egraph.tir.scalar import select as select
from relax_egraph.tir.scalar import shift_left as shift_left
from relax_egraph.tir.scalar import shift_right as shift_right
from relax_egraph.tir.scalar import sigmoid as sigmoid
from relax_egraph.tir.scalar import sin as sin
from relax_egraph.tir.scalar import sinh as sinh
from relax_egraph.tir.scalar import sqrt as sqrt
from relax_egraph.tir.scalar import tan as tan
from relax_egraph.tir.scalar import tanh as tanh
from relax_egraph.tir.scalar import trunc as trunc
from relax_egraph.tir.scalar import truncmod as truncmod
from relax_egraph.tir.tensor import ReduceAxis as ReduceAxis
from relax_egraph.tir.tensor import Tensor as Tensor
from relax_egraph.tir.tensor import compute as compute
from relax_egraph.tir.tensor import max as max
from relax_egraph.tir.tensor import min as min
from relax_egraph.tir.tensor import placeholder as placeholder
from relax_egraph.tir.tensor import prod as prod
from relax_egraph.tir.tensor import reduce_axis as reduce_axis
from relax_egraph.tir.tensor import sum as sum
