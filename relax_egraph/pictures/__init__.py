"""Pictures of programs and e-graphs as SVG: boxes in layers, an edge from each to its users."""
