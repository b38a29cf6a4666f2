# SPDX-License-Identifier: Apache-2.0

"""Records every change of owner: in an audit log, on the bus, and in Nova.

The lines are written at once. What needs the message bus, or conductor, is
written in the background: a takeover neither waits for it nor fails because of
it. Actions do not wait for notifications: without an action, this service does
not know after a restart that it has taken the instance from a dead one.
"""

from collections.abc import Iterable
import datetime
import functools

from nova import context as nova_context
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import timeutils
import tenacity

from nova_ironic_ring.adapters import background
from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.adapters.trail import audit
from nova_ironic_ring.core.deciding import audit as core_audit
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import view

LOG = logging.getLogger(__name__)

_PUBLISHER = 'nova-compute'
# So many notifications may wait for a message bus that does not answer. A
# takeover of all nodes of a service makes thousands at once.
_MOST = 10000
# How long it is tried to record an action, and how long it is waited between
# two tries at most, in seconds.
_PATIENCE = 600
_LONGEST_WAIT = 30


class History:
    """The changes of owner that one service makes."""

    def __init__(self) -> None:
        """Begin with nothing to write."""
        # Each was a write of conductor's before: they cannot become many if it
        # does not answer.
        self._actions = background.Background('instance actions')
        self._notifications = background.Background('notifications', _MOST)

    def write(self, happened: Iterable[events.Event], me: str,
              known: view.View) -> None:
        """Record changes of owner, and return at once.

        :param happened: what has happened
        :param me: the name of the service
        :param known: what it knows of the others
        """
        now = timeutils.utcnow()
        for entry in core_audit.entries(happened, me, known):
            said = audit.write(entry)
            if entry.code in core_audit.ACTIONS:
                self._actions.do(functools.partial(_record, entry, now))
            self._notifications.do(
                functools.partial(audit.notify, said, _PUBLISHER))

    def wait(self, seconds: float) -> bool:
        """Wait until all is written.

        :param seconds: how long at most, for actions and for notifications
        :returns: whether all is written
        """
        return self._actions.wait(seconds) and (
            self._notifications.wait(seconds))


def _record(entry: core_audit.Entry, at: datetime.datetime) -> None:
    """Record a takeover as an action of the instance.

    A recovery that a restart interrupts goes on by it: where conductor, or its
    database, does not answer, it is tried again.
    """
    context = nova_context.get_admin_context()
    try:
        for attempt in tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(
                    oslo_messaging.MessagingException),
                stop=tenacity.stop_after_delay(_PATIENCE),
                wait=tenacity.wait_exponential(max=_LONGEST_WAIT),
                reraise=True):
            with attempt:
                actions.record(context, entry, at,
                               attempt.retry_state.attempt_number > 1)
    except Exception as error:
        LOG.warning('Cannot record as an instance action that instance '
                    '%(instance)s goes from %(source)s to %(target)s: '
                    '%(error)s', {
                        'instance': entry.instance, 'source': entry.source,
                        'target': entry.target, 'error': error})
