"""The converters of operations, which are registered when this is imported."""

from relax_egraph.frontends.stablehlo.operators import bits as bits
from relax_egraph.frontends.stablehlo.operators import calls as calls
from relax_egraph.frontends.stablehlo.operators import control as control
from relax_egraph.frontends.stablehlo.operators import convolutions as convolutions
from relax_egraph.frontends.stablehlo.operators import dtypes as dtypes
from relax_egraph.frontends.stablehlo.operators import elementwise as elementwise
from relax_egraph.frontends.stablehlo.operators import functions as functions
from relax_egraph.frontends.stablehlo.operators import gathering as gathering
from relax_egraph.frontends.stablehlo.operators import making as making
from relax_egraph.frontends.stablehlo.operators import movement as movement
from relax_egraph.frontends.stablehlo.operators import padding as padding
from relax_egraph.frontends.stablehlo.operators import pool_gradients as pool_gradients
from relax_egraph.frontends.stablehlo.operators import products as products
from relax_egraph.frontends.stablehlo.operators import random as random
from relax_egraph.frontends.stablehlo.operators import reductions as reductions
from relax_egraph.frontends.stablehlo.operators import scattering as scattering
from relax_egraph.frontends.stablehlo.operators import slicing as slicing
from relax_egraph.frontends.stablehlo.operators import sorting as sorting
from relax_egraph.frontends.stablehlo.operators import top_k as top_k
from relax_egraph.frontends.stablehlo.operators import windows as windows
