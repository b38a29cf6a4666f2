# SPDX-License-Identifier: Apache-2.0

"""Asks for several things at a time."""

from collections.abc import Callable, Iterable
import contextvars
from typing import TypeVar

import futurist

# Conductor and Placement have other things to do.
_THREADS = 4

_Given = TypeVar('_Given')
_Found = TypeVar('_Found')


def run(call: Callable[[_Given], _Found], given: Iterable[_Given]
        ) -> list[_Found]:
    """Call a function with each value, several at a time.

    :param call: the function
    :param given: the values
    :returns: what each call has returned, in the order of the values
    :raises Exception: the exception of the first call that fails, when all
        have ended
    """
    values = list(given)
    if len(values) < 2:
        return [call(value) for value in values]
    with futurist.ThreadPoolExecutor(min(_THREADS, len(values))) as executor:
        # Each thread is in haste if this one is.
        futures = [executor.submit(
            contextvars.copy_context().run, call, value) for value in values]
    return [future.result() for future in futures]
