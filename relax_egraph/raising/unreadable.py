"""Why a loop function stays as it is."""


class Unreadable(Exception):
    """A loop function is no composition of operators; the message is the reason, in a report."""
