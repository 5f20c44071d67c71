"""Plans of a function on several devices, found by equations; and the program of each device."""

from relax_egraph.shards.devices import Cut as Cut
from relax_egraph.shards.devices import DeviceProgram as DeviceProgram
from relax_egraph.shards.devices import device_program as device_program
from relax_egraph.shards.link import Link as Link
from relax_egraph.shards.plan import ShardedPlan as ShardedPlan
from relax_egraph.shards.plan import sharded as sharded
from relax_egraph.shards.plan import stated as stated
from relax_egraph.shards.run import built as built
from relax_egraph.shards.run import run_in_threads as run_in_threads
from relax_egraph.shards.simulated import simulated_seconds as simulated_seconds
