# SPDX-License-Identifier: Apache-2.0

"""SIGTERM ends the heartbeat of a nova-compute at once, as a crash does.

Without this it would continue for minutes, while Nova waits for what is under
way: the service accepts no requests then, and no other service takes its
nodes.
"""

from collections.abc import Callable
import signal
from types import FrameType

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def install(silence: Callable[[], None]) -> None:
    """Do something more on SIGTERM from now on, and before all else.

    :param silence: ends the heartbeat; called in the middle of anything, so
        that it must neither wait nor lock
    """
    before = signal.getsignal(signal.SIGTERM)

    if not callable(before):
        # Nobody handles it: it ends the process anyway.
        return

    def end(number: int, frame: FrameType | None) -> None:
        try:
            silence()
        finally:
            before(number, frame)

    try:
        signal.signal(signal.SIGTERM, end)
    except ValueError:
        # Not in the main thread, where Nova starts its drivers.
        LOG.warning('SIGTERM will not end the heartbeat: its handler can be '
                    'set in the main thread only.')
