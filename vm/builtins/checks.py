"""Checks of what struct info claims: see `vm.matching`."""

from relax_egraph.vm import matching
from relax_egraph.vm.builtins.builtin import Builtin, bound

CHECKS: tuple[Builtin, ...] = (
    bound(matching.match_shape, "value", "heap"),
    bound(matching.match_prim, "value", "heap"),
    bound(matching.check_tensor_info, "value"),
    bound(matching.check_shape_info, "value"),
    bound(matching.check_tuple_info, "value"),
    bound(matching.check_prim_info, "value"),
    bound(matching.check_string_info, "value"),
    bound(matching.check_func_info, "value"),
    bound(matching.check_upper_bound, "value"),
)
