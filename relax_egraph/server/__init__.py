"""A model over HTTP: the V2 inference protocol, dynamic batching, limits and metrics."""
