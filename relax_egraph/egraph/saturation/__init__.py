"""One run of a schedule of rules on an e-graph, in this process."""
