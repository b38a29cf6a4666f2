# SPDX-License-Identifier: Apache-2.0

"""Writes what changes hands: as lines of a log, and as notifications."""

import datetime
import json

import nova.conf
from nova import context as nova_context
from nova import rpc
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring.core.deciding import audit

LOG = logging.getLogger(__name__)
CONF = nova.conf.CONF

#: The name of the log.
LOGGER = 'nova_ironic_ring.audit'
_LINES = logging.getLogger(LOGGER)

#: What the types of all notifications begin with.
PREFIX = 'ironic_ring.'
# How often it is tried to send a notification. Without a limit oslo.messaging
# would wait for the message bus for ever.
_ATTEMPTS = 3


def values(entry: audit.Entry, at: datetime.datetime) -> dict[str, object]:
    """Return what a line says, and a notification.

    :param entry: what has happened
    :param at: when, with time zone
    """
    return {'time': at.isoformat(timespec='milliseconds'), **entry.values()}


def write(entry: audit.Entry) -> dict[str, object]:
    """Write a line, which is one JSON object.

    :param entry: what has happened, just now
    :returns: what the line says
    """
    said = values(entry, timeutils.utcnow(with_timezone=True))
    _LINES.info('%s', json.dumps(said))
    return said


def notify(said: dict[str, object], publisher: str) -> None:
    """Send a notification, as Nova's configuration has it.

    On the topics for versioned notifications where Nova sends these, else on
    the others. Nothing is sent where no driver of oslo.messaging is
    configured. An error is logged.

    :param said: what the line has said
    :param publisher: who sends it: the name of the program
    """
    notifier = (rpc.LEGACY_NOTIFIER
                if CONF.notifications.notification_format == 'unversioned'
                else rpc.NOTIFIER)
    if notifier is None or not notifier.is_enabled():
        return
    try:
        notifier.prepare(
            publisher_id=f'{publisher}:{said["host"]}', retry=_ATTEMPTS).info(
                nova_context.get_admin_context(),
                PREFIX + str(said['event']).lower(), said)
    except Exception as error:
        LOG.warning('A notification of %(event)s cannot be sent: %(error)s', {
            'event': said['event'], 'error': error})
