# SPDX-License-Identifier: Apache-2.0

"""Limits how long requests to Ironic and Placement wait for an answer.

Nova's sessions wait for ever by default, and a service that is frozen accepts
connections. Passes, looks and the last looks of builds are in haste.
"""

from collections.abc import Callable, Iterator
import contextlib
import contextvars
import functools
import time
from typing import Any
from typing import TypeVar

from keystoneauth1 import exceptions
from keystoneauth1 import session
from oslo_config import cfg

from nova_ironic_ring.adapters import nesting

# A request that is not in haste may wait this many times as long: Ironic
# answers some, such as those for a port of an instance, when its conductor has
# done what they ask for, or has failed to do so within a minute.
_PATIENCE = 4

_T = TypeVar('_T')

_HASTE = contextvars.ContextVar('ironic_ring_haste', default=False)


class Session(session.Session):
    """A session with a service that may be silent.

    One request in haste finds that out for all. Otherwise each in turn would
    wait, and a pass has many.
    """

    #: How long a request in haste waits, in seconds; after it, no other one is
    #: sent for as long.
    hasty: float
    #: Whether all requests are in haste.
    is_hasty = False
    # When the service was last silent, by the clock of the process.
    _silent_at: float | None = None

    def request(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request.

        :param args: as keystoneauth has them
        :param kwargs: as keystoneauth has them
        :raises keystoneauth1.exceptions.ConnectTimeout: if the service is
            silent, or was silent just now and the request is in haste
        """
        silent_at = self._silent_at
        is_hasty = self.is_hasty or _HASTE.get()
        if is_hasty:
            if silent_at is not None and (
                    time.monotonic() - silent_at < self.hasty):
                raise exceptions.ConnectTimeout(
                    'it has not answered another request within '
                    f'{self.hasty:g} s')
            kwargs.setdefault('timeout', self.hasty)
            # Who waits has waited for the limit then.
            kwargs['connect_retries'] = 0
        try:
            answer = super().request(*args, **kwargs)
        except exceptions.ConnectTimeout:
            # A request that is not in haste may wait for Ironic's conductor:
            # Ironic is not silent then.
            if is_hasty:
                self._silent_at = time.monotonic()
            raise
        self._silent_at = None
        nesting.read_shallow(answer)
        return answer


def limit(found: session.Session, options: cfg.ConfigOpts,
          is_hasty: bool = False) -> None:
    """Limit the requests of a session, unless the operator has.

    :param found: the session; doing so twice is harmless
    :param options: nova.conf
    :param is_hasty: whether all of them are in haste
    """
    # Sites and tests have others.
    if type(found) is not session.Session:
        return
    found.__class__ = Session
    assert isinstance(found, Session)
    default = options.ironic_ring.request_timeout
    found.hasty = found.timeout or float(default)
    found.timeout = found.timeout or float(_PATIENCE * default)
    found.is_hasty = is_hasty


@contextlib.contextmanager
def haste() -> Iterator[None]:
    """Send requests that somebody else waits for."""
    token = _HASTE.set(True)
    try:
        yield
    finally:
        _HASTE.reset(token)


def hasty(method: Callable[..., _T]) -> Callable[..., _T]:
    """Return a method that is in haste.

    :param method: the method
    """
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> _T:
        with haste():
            return method(*args, **kwargs)
    return call
