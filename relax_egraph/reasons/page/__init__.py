"""A page of HTML that says why an optimized module is what it is, complete in one file."""
