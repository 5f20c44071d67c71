"""Recording of a saturation: a second run that records the matches of each rule."""
