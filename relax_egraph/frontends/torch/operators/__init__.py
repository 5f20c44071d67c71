"""The converters of ATen operators, which are registered when this is imported."""

from relax_egraph.frontends.torch.operators import attention as attention
from relax_egraph.frontends.torch.operators import bags as bags
from relax_egraph.frontends.torch.operators import convolutions as convolutions
from relax_egraph.frontends.torch.operators import distances as distances
from relax_egraph.frontends.torch.operators import elementwise as elementwise
from relax_egraph.frontends.torch.operators import gradients as gradients
from relax_egraph.frontends.torch.operators import losses as losses
from relax_egraph.frontends.torch.operators import norms as norms
from relax_egraph.frontends.torch.operators import pools as pools
from relax_egraph.frontends.torch.operators import products as products
from relax_egraph.frontends.torch.operators import recurrent as recurrent
from relax_egraph.frontends.torch.operators import resizing as resizing
from relax_egraph.frontends.torch.operators import views as views
