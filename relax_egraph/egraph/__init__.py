"""The e-graph: encoding, rules, saturation, decoding; the only door to egglog."""
