"""``python -m relax_egraph``: the command ``relax-egraph``."""

from relax_egraph.cli import main

if __name__ == "__main__":
    main()
