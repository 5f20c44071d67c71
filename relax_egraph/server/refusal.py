"""Requests that are refused: a status and a sentence."""

from http import HTTPStatus


class Refused(Exception):
    """A request that is answered by `status` and a sentence: what was sent, what is needed."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def bad(sentence: str) -> Refused:
    """A request that does not keep to the protocol, or does not fit the model."""
    return Refused(HTTPStatus.BAD_REQUEST, sentence)


def unknown(sentence: str) -> Refused:
    """A request for something that there is not."""
    return Refused(HTTPStatus.NOT_FOUND, sentence)


def too_large(most: int) -> Refused:
    """A request of more than `most` bytes."""
    problem = f"the body has more than {most} bytes, the limit of this server"
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
