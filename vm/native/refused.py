"""The exception of the translation to native programs."""


class Refused(Exception):
    """Something of a function has no native form; the message says what.

    The interpreter runs such code.
    """
