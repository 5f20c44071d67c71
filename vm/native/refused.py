"""`Refused`: the exception of the translation to native programs."""


class Refused(Exception):
    """Code without a native form; the message names it.

    The interpreter runs such code.
    """
