"""The converters of ATen operators, which are registered when this is imported."""

from relax_egraph.frontends.torch.operators import assertions as assertions
from relax_egraph.frontends.torch.operators import diagonals as diagonals
from relax_egraph.frontends.torch.operators import elementwise as elementwise
from relax_egraph.frontends.torch.operators import indexing as indexing
from relax_egraph.frontends.torch.operators import joining as joining
from relax_egraph.frontends.torch.operators import padding as padding
from relax_egraph.frontends.torch.operators import products as products
from relax_egraph.frontends.torch.operators import scattering as scattering
from relax_egraph.frontends.torch.operators import searching as searching
from relax_egraph.frontends.torch.operators import slicing as slicing
from relax_egraph.frontends.torch.operators import striding as striding
from relax_egraph.frontends.torch.operators import views as views
from relax_egraph.frontends.torch.operators import writing as writing
