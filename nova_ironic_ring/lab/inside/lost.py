# SPDX-License-Identifier: Apache-2.0

"""Loses answers to nova-compute: what it asks for is done, and it is not told.

This happens while a file is in the lab's directory, to a share of the requests
that the file says.
"""

from collections.abc import Callable, Iterable
import errno
import os
import pathlib
import random
from typing import Any

_FILE = 'answers-are-lost'
_READS = ('GET', 'HEAD')
_ERROR = '503 Service Unavailable'

_Application = Callable[..., Iterable[bytes]]


def lose(directory: pathlib.Path, share: float) -> None:
    """Let a lab lose answers from now on.

    :param directory: the lab's directory
    :param share: which share of them; 0 for none
    """
    (directory / _FILE).write_text(str(share))


def now() -> bool:
    """Say whether the answer to this request is lost."""
    try:
        share = pathlib.Path(
            os.environ['NOVA_IRONIC_RING_LAB'], _FILE).read_text()
    except FileNotFoundError:
        return False
    return random.random() < float(share)


def losing(application: _Application) -> _Application:
    """Return a WSGI application that loses some answers.

    :param application: does what is asked for
    """
    def answer(environ: dict[str, Any], start: Callable[..., Any]
               ) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] in _READS or not environ.get(
                'HTTP_USER_AGENT', '').startswith('nova-compute') or (
                    not now()):
            return application(environ, start)
        b''.join(application(environ, lambda *said: None))
        if random.random() < 0.5:
            # The server closes the connection, and says nothing.
            raise ConnectionResetError(errno.ECONNRESET, 'lost')
        start(_ERROR, [])
        return [_ERROR.encode()]
    return answer
