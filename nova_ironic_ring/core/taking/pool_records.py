# SPDX-License-Identifier: Apache-2.0

"""The records of nodes that a service with pools finds.

A node has a record of its own if a service has the ring driver, or had it
before. As long as another service has the record, that service owns the node:
the node comes into a pool by the same decisions as it would come to a service
with the ring driver, and then its record is deleted.
"""

from collections.abc import Collection, Mapping

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.core.values import model


def claim(this: one_pass.Pass, rows: Mapping[str, model.Row],
          claims: planner.Plan) -> frozenset[str]:
    """Take free nodes from the services that have their records.

    :param this: the pass
    :param rows: the records that others have, by the node's UUID
    :param claims: what was decided on these nodes
    :returns: the nodes that are this service's now, though their records have
        to go yet
    """
    claims.note_in(this.memory)
    this.happened.extend(
        each for each in claims.happened
        if not isinstance(each, events.NodeOffered))
    taken: set[str] = set()
    look.renew(this)
    for node, step in this.while_current(claims.steps.items()):
        if not step.decision.lists or len(taken) >= takeover.MOST:
            continue
        try:
            if not tracking.claim(this, node, step):
                taken.add(node)
        except tracking.NodeLostError:
            continue
        except Exception as error:
            this.happened.append(events.RecordNotRemoved(
                node, rows[node].owner, error))
    return frozenset(taken)


def remove(this: one_pass.Pass, rows: Mapping[str, model.Row]) -> None:
    """Remove the records of nodes that are in pools, with their providers.

    The provider goes first: without the record, nobody would look for it
    again. A provider with allocations stays, and so does its record.

    :param this: the pass
    :param rows: the records
    """
    gone, tried, pooled = [], list[str](), this.memory.pooled
    for node, row in list(rows.items())[:takeover.MOST]:
        if row.owner_name != this.current.me and not this.is_valid:
            continue
        with this.going_on(events.RecordNotRemoved, node, row.owner):
            if this.world.placement.drop_provider(node):
                # Before the row is deleted, whose answer may be lost.
                tried.append(node)
                if this.world.nova.delete_row(node, row.owner):
                    gone.append(node)
    _drop_again(this, pooled.dropped - rows.keys())
    if gone:
        this.happened.append(events.NodesPooled(gone))
    pooled.dropped = frozenset(
        node for node in tried if rows[node].owner_name != this.current.me)


def _drop_again(this: one_pass.Pass, nodes: Collection[str]) -> None:
    """Remove the providers of nodes whose records have gone in the last pass.

    The tracker of the former owner may just have been about to write one. A
    node that has a record has been taken since, and needs its provider; if it
    is to come into a pool, both go as before.
    """
    left: list[str] = []
    with this.going_on(
            events.RecordNotRemoved, min(nodes, default=None), None):
        recorded = this.world.nova.rows(sorted(nodes)) if nodes else {}
        left = sorted(set(nodes) - recorded.keys())
    for node in left:
        with this.going_on(events.RecordNotRemoved, node, None):
            this.world.placement.drop_provider(node)
