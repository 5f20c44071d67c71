"""Shows the log where ``RELAX_EGRAPH_LOG`` asks for it; else `logging` is not even imported."""

import os

if os.environ.get("RELAX_EGRAPH_LOG"):
    from relax_egraph.base.log import show

    show()
