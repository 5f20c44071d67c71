"""The converters of ATen operators, which are registered when this is imported."""

from relax_egraph.frontends.torch.operators import elementwise as elementwise
from relax_egraph.frontends.torch.operators import products as products
from relax_egraph.frontends.torch.operators import views as views
