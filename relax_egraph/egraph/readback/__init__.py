"""From an e-graph back to a view, and from a chosen program back to bindings."""
