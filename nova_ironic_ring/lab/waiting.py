# SPDX-License-Identifier: Apache-2.0

"""Waits for something to become true."""

from collections.abc import Callable

import tenacity


def until(done: Callable[[], object], timeout: float, poll: float) -> bool:
    """Wait until something is true.

    :param done: returns whether it is true; an error that it raises ends the
        wait, and is raised here
    :param timeout: seconds
    :param poll: seconds between two calls
    :returns: False if it is still not true after the timeout
    """
    try:
        tenacity.Retrying(
            retry=tenacity.retry_if_not_result(bool),
            stop=tenacity.stop_after_delay(timeout),
            wait=tenacity.wait_fixed(poll))(done)
    except tenacity.RetryError:
        return False
    return True
