# SPDX-License-Identifier: Apache-2.0

"""Does several things at the same time, most of which wait for an answer."""

from collections.abc import Callable
import threading
from typing import Generic
from typing import TypeVar

_T = TypeVar('_T')


class Call(Generic[_T]):
    """A call that is made at once, in a thread of its own.

    Nothing waits for it at the end of the process: what it asks may never
    answer.
    """

    def __init__(self, call: Callable[[], _T]) -> None:
        """Make the call.

        :param call: what is called
        """
        self._call = call
        self._value: _T
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:
            self._error = error

    def result(self, timeout: float | None = None) -> _T:
        """Return what the call returns, or raise what it raises.

        :param timeout: how long to wait for it, in seconds; None for ever
        :raises TimeoutError: if that is over
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError()
        if self._error is not None:
            raise self._error
        return self._value
