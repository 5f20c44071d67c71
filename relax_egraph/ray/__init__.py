"""Work on several machines with Ray: the only door to it.

rx.ray.map_batches(ray.data.read_parquet("rows/"), "model.rxe").write_parquet("results/")
"""

from relax_egraph.ray.batches import map_batches as map_batches
