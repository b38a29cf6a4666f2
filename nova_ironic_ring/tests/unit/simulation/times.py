# SPDX-License-Identifier: Apache-2.0

"""The times of the simulated services, in seconds, as on the lab."""

import datetime

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.world import cloud as clouds

REPORT_INTERVAL = 2.0
DOWN_TIME = 8.0
PASS_INTERVAL = 5.0
#: Short enough for there to be looks between two passes.
CHANGES_INTERVAL = 2.0
#: In each pass, and the default, which is longer than most stories.
FULL_UPDATE_INTERVALS = (0.0, 600.0)
#: Two passes, each of which takes some seconds itself.
HANDOVER_TIMEOUT = 2 * (PASS_INTERVAL + 4)
FAILOVER_AFTER = 12.0
PARTITIONS = 32
#: From the death of a service, or the end of an outage, until all have found
#: out who is absent: an outage is over a pass later, and has a service wait
#: for twice the down time; the next pass sees it.
DETECTION = 2 * DOWN_TIME + 3 * PASS_INTERVAL
#: From the last event until all is where it belongs: what has gone is found
#: out; who has only begun to take over may be gone as well; a service that is
#: left without a node takes one first; three passes; and a pass that took
#: long, because of what has happened, is forgotten in as many more.
QUIET = DETECTION + HANDOVER_TIMEOUT + 12 * PASS_INTERVAL
#: For how long the passes of a service may fail until the others go without
#: it: four passes, each of which takes some seconds itself, and twice that
#: after an outage.
PATIENCE = 2 * 4 * (PASS_INTERVAL + 9)


def is_down(service: model.Service, now: float) -> bool:
    """Say whether a service is down for Nova's API.

    :param service: its record
    :param now: the present time, in seconds
    """
    return service.forced_down or membership.is_late(
        service, clouds.EPOCH + datetime.timedelta(seconds=now), DOWN_TIME)
