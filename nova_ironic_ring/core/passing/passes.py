# SPDX-License-Identifier: Apache-2.0

"""A pass: look, decide, take and report.

This is a pass from top to bottom. Both drivers, the simulation and the
forecast of the command run it. Its argument says what a place is: a node
(:mod:`~nova_ironic_ring.core.passing.node_places`), or a pool
(:mod:`~nova_ironic_ring.core.passing.pool_places`). What a service does
between two passes is in :mod:`~nova_ironic_ring.core.passing.reaction`, and
the last look at each node in :mod:`~nova_ironic_ring.core.taking.tracking`.
The order of the reads matters for correctness:

1. Ironic's nodes; with ``listing = shards`` after the services, which tell
   which shards are this one's;
2. the services, of which the members and the ring are made, *after* the nodes:
   the listing may take longer than what is known of the services is valid;
3. this service's instances, likewise: an instance that appears during the
   listing is then known to be this service's;
4. the rows of this service;
5. what the decisions depend on beyond that.
"""

import dataclasses

from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import places
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

#: Raised by :func:`run`.
UnansweredError = one_pass.UnansweredError


def run(world: ports.Ports, remembering: places.Remembering,
        current: settings.Settings,
        place: places.Places[places.Seen, places.Plan, places.Passed,
                             places.Reacted]) -> places.Passed:
    """Run a pass.

    :param world: the ports
    :param remembering: has what this service remembers, begun
        (:meth:`~nova_ironic_ring.core.peers.observation.Memory.begun`), which
        is not changed
    :param current: its settings
    :param place: what a place is
    :raises UnansweredError: if Nova or Ironic did not answer, or all else
        that fails
    """
    before = remembering.memory
    this = one_pass.Pass(world, current, before.copied(), before)
    with this.asking():
        nodes = listing.nodes(this)
    # Looks may have seen and done much while the nodes were listed.
    before = remembering.memory
    this = one_pass.Pass(world, current, before.copied(), before)
    with this.asking():
        this.see_what_was_taken()
        begun = listing.begin(this, nodes)
        seen = place.look(this, begun)
        result = place.take(this, seen, place.decide(this, seen))
    # Nova refuses to start a new service that names instances.
    return dataclasses.replace(
        result, before=before,
        orphans=result.orphans if begun.is_recorded else frozenset())
