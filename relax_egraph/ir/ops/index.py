"""Reading and writing at positions that other tensors give."""
