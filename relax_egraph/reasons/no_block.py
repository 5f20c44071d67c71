"""The error message for a model without operators that rules could rewrite."""

NO_BLOCK = "the model has no operator without effects, and rules rewrite nothing else"
