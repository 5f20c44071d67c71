"""The converters of ATen operators, which are registered when this is imported."""

from relax_egraph.frontends.torch.operators import activations as activations
from relax_egraph.frontends.torch.operators import arithmetic as arithmetic
from relax_egraph.frontends.torch.operators import bits as bits
from relax_egraph.frontends.torch.operators import clamps as clamps
from relax_egraph.frontends.torch.operators import comparisons as comparisons
from relax_egraph.frontends.torch.operators import creation as creation
from relax_egraph.frontends.torch.operators import products as products
from relax_egraph.frontends.torch.operators import reductions as reductions
from relax_egraph.frontends.torch.operators import scans as scans
from relax_egraph.frontends.torch.operators import sorting as sorting
from relax_egraph.frontends.torch.operators import special as special
from relax_egraph.frontends.torch.operators import unary as unary
from relax_egraph.frontends.torch.operators import views as views
