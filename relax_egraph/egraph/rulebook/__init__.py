"""Rule files, from text to a checked book of rules."""
