"""x"""
from relax_egraph.shards.link import Link as Link
from relax_egraph.shards.plan import ShardedPlan as ShardedPlan
from relax_egraph.shards.plan import sharded as sharded
from relax_egraph.shards.plan import stated as stated
