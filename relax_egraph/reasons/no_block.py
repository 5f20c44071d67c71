"""What is said of a model that has nothing for rules."""

NO_BLOCK = (
    "the model has no dataflow block, and rules rewrite nothing else: "
    "put its operators under `with R.dataflow():`"
)
