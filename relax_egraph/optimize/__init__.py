"""Optimize modules: dataflow blocks are planned region by region, and put together again."""

from relax_egraph.optimize.explanation import Explanation as Explanation
from relax_egraph.optimize.run import optimize as optimize
