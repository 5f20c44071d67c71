"""The error message for a model without dataflow blocks."""

NO_BLOCK = (
    "the model has no dataflow block, and rules rewrite nothing else: "
    "put its operators under `with R.dataflow():`"
)
