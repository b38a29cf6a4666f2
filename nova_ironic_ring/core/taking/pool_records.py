# SPDX-License-Identifier: Apache-2.0

"""The records of nodes that a service with pools finds.

A node has a record of its own where a service has the ring driver, or had it
before. As long as another service has the record, the node is that one's: it
comes into a pool as it would come to a service with the ring driver, by the
same decisions, and its record goes then.
"""

from collections.abc import Collection, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking import takeover
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class Records:
    """What records there are.

    :ivar own: those of this service, of nodes and of pools, by UUID
    :ivar others: those that other services have of free nodes that are for
        this service, and of nodes with its instances, by the node's UUID
    :ivar services: what all services are
    """

    own: Mapping[str, model.Row] = dataclasses.field(default_factory=dict)
    others: Mapping[str, model.Row] = dataclasses.field(default_factory=dict)
    services: observation.Others = observation.Others()


@dataclasses.dataclass(frozen=True)
class Claimed:
    """What has come of the records of free nodes that others have.

    :ivar taken: the nodes that are this service's now, though their records
        have to go yet
    :ivar left: the nodes that still belong to the others
    :ivar instances: what has become this service's by it, because it was being
        deleted when its service died
    """

    taken: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    instances: tuple[takeover.Takeover, ...] = ()


def claim(this: look.Pass, memory: observation.Memory, records: Records,
          free: Collection[str]) -> tuple[Claimed, observation.Memory]:
    """Decide which free nodes to take from the services that have them.

    :param this: the pass
    :param memory: what is remembered
    :param records: the records
    :param free: the free nodes that are for this service
    :returns: what has come of it, and what is to be remembered
    """
    recorded = {node: None for node in free if node in records.others}
    if recorded and not records.own and len(recorded) < len(free):
        # The peers see this service as soon as it has a pool of the others.
        return Claimed(left=frozenset(recorded)), memory
    plan, memory = planner.decide(observation.Observation(
        this.world.process.now(), memory.standing, recorded,
        {**records.own, **records.others}, others=records.services,
        tracked=frozenset()), memory, this.current)
    this.happened.extend(
        each for each in plan.happened
        if not isinstance(each, events.NodeOffered))
    taken: set[str] = set()
    instances: list[takeover.Takeover] = []
    for node, step in plan.steps.items():
        if not step.decision.lists or len(taken) >= takeover.MOST:
            continue
        try:
            settled = tracking.claim(
                this.world, node, step, this.current.me)
        except tracking.NodeInUseError:
            memory = memory.with_node_in_use(node)
        except tracking.NodeLostError:
            continue
        except Exception as error:
            this.happened.append(events.RecordNotRemoved(
                node, records.others[node].owner, error))
        else:
            this.happened.extend(settled.happened)
            instances += settled.taken
            if not settled.left:
                taken.add(node)
    return Claimed(frozenset(taken), frozenset(recorded.keys() - taken),
                   tuple(instances)), memory


def remove(this: look.Pass, memory: observation.Memory,
           rows: Mapping[str, model.Row]) -> observation.Memory:
    """Remove the records of nodes that are in pools, with their providers.

    The provider goes first: without the record, nobody would look for it
    again. One that something rests on stays, and so does the record.

    :param this: the pass
    :param memory: what is remembered
    :param rows: the records
    :returns: what is to be remembered
    """
    gone = []
    for node, row in list(rows.items())[:takeover.MOST]:
        try:
            if this.world.placement.drop_provider(node) and (
                    this.world.nova.delete_row(node, row.owner)):
                gone.append(node)
        except Exception as error:
            this.happened.append(
                events.RecordNotRemoved(node, row.owner, error))
    _drop_again(this, memory.pooled.dropped - rows.keys())
    if gone:
        this.happened.append(events.NodesPooled(gone))
    return dataclasses.replace(memory, pooled=dataclasses.replace(
        memory.pooled, dropped=frozenset(
            node for node in gone
            if rows[node].owner_name != this.current.me)))


def _drop_again(this: look.Pass, nodes: Collection[str]) -> None:
    """Remove the providers of nodes whose records have gone in the last pass.

    The tracker of the former owner may just have been about to write one. A
    node that has a record has been taken since, and needs its provider; if it
    is to come into a pool, both go as before.
    """
    try:
        recorded = this.world.nova.rows(sorted(nodes)) if nodes else {}
    except Exception as error:
        this.happened.append(
            events.RecordNotRemoved(min(nodes), None, error))
        return
    for node in sorted(nodes):
        if node in recorded:
            continue
        try:
            this.world.placement.drop_provider(node)
        except Exception as error:
            this.happened.append(events.RecordNotRemoved(node, None, error))
