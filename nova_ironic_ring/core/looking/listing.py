# SPDX-License-Identifier: Apache-2.0

"""The nodes and the instances that every pass lists.

With ``listing = shards`` a pass lists the nodes of some shards only. Which
shards these are is decided here.
"""

import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools

#: So many nodes are asked for one by one. Where more have left their shards,
#: as after a restart or when an operator has set others, all are listed once.
FEW = 20


@dataclasses.dataclass(frozen=True)
class Beginning:
    """What every pass has read first.

    :ivar memory: what is to be remembered
    :ivar is_recorded: whether this service has a record
    :ivar nodes: the instance on each node of Ironic
    :ivar mine: the UUIDs of this service's instances
    :ivar narrowed: the nodes that services divide which are limited to some of
        this one's, by UUID
    :ivar unasked: the nodes of the pass before that Ironic was not asked for
        now, since they are in shards of others
    """

    memory: observation.Memory
    is_recorded: bool
    nodes: model.Nodes
    mine: frozenset[str]
    narrowed: frozenset[str] = frozenset()
    unasked: frozenset[str] = frozenset()


def begin(this: look.Pass, before: observation.Memory) -> Beginning:
    """Read the services, the nodes, and *then* this service's instances.

    The listing of nodes takes seconds, and an instance that appears meanwhile
    is then known to be this service's.

    :param this: the pass
    :param before: what this service remembers
    :raises look.UnansweredError: if Nova or Ironic could not be asked
    """
    world = this.world
    with look.asking(this, look.Port.NOVA, before):
        memory, is_recorded = look.at_services(this, before, is_pass=True)
    listed, memory = (
        _list_all(this, memory) if memory.standing.ring.deal is None
        else _list_shards(this, memory))
    memory = _look_at_scope(this, memory, listed.nodes)
    with look.asking(this, look.Port.IRONIC, memory):
        narrowed = frozenset(
            node for scope in memory.standing.membership.narrower
            for node in world.ironic.uuids(scope))
    return Beginning(
        dataclasses.replace(memory, nodes=listed.nodes), is_recorded,
        listed.nodes, listed.mine, narrowed, listed.unasked)


def _look_at_scope(this: look.Pass, memory: observation.Memory,
                   nodes: model.Nodes) -> observation.Memory:
    """Say once that there is no node in the scope.

    Where nodes are divided by shards, this service may have been dealt none.

    :param nodes: those that were listed
    """
    scope = this.current.scope
    empty = scope if not nodes and scope.is_limited and (
        memory.standing.ring.deal is None) else None
    if empty is not None and empty != memory.empty:
        this.happened.append(events.ScopeEmpty(empty))
    return dataclasses.replace(memory, empty=empty)


@dataclasses.dataclass(frozen=True)
class _Listed:
    """The nodes, and the instances of this service.

    :ivar nodes: the instance on each node
    :ivar mine: the UUIDs of this service's instances
    :ivar unasked: as :class:`Beginning` has it
    """

    nodes: model.Nodes
    mine: frozenset[str]
    unasked: frozenset[str] = frozenset()


def _list_all(this: look.Pass, memory: observation.Memory
              ) -> tuple[_Listed, observation.Memory]:
    """List all nodes of the scope."""
    with look.asking(this, look.Port.IRONIC, memory):
        nodes: model.Nodes = this.world.ironic.nodes(this.current.scope)
    with look.asking(this, look.Port.NOVA, memory):
        mine = this.world.nova.instances_of(this.current.host)
    with look.asking(this, look.Port.IRONIC, memory):
        if this.current.scope.is_limited:
            nodes = _with_own(this, nodes, mine)
    return _Listed(nodes, mine), dataclasses.replace(
        memory, shards=observation.Asked(), held=None, held_before=memory.held)


def _list_shards(this: look.Pass, memory: observation.Memory
                 ) -> tuple[_Listed, observation.Memory]:
    """List the nodes of some shards, and those without one.

    These are the shards which the ring gives to this service, and those in
    which it still has nodes or instances. Nodes of its own that are in none of
    these are asked for by their names.
    """
    world, current, before = this.world, this.current, memory.standing.ring
    assert before.deal is not None
    with look.asking(this, look.Port.NOVA, memory):
        own = pools.rows_of_nodes(world.nova.rows_of(current.host)).keys()
    with look.asking(this, look.Port.IRONIC, memory):
        # Where Ironic hides them all, they are dealt as before.
        names = world.ironic.shards(current.scope) or before.deal.names
        ring = before.rebuilt(before.members, before.partitions,
                              dataclasses.replace(before.deal, names=names))
        asked = ring.shards(current.me) | (memory.shards.used & names)
        nodes: model.Nodes = world.ironic.nodes(current.scope, asked)
        missing = own - nodes.keys()
        is_whole = len(missing) > FEW
        if is_whole:
            nodes = world.ironic.nodes(current.scope, names)
        elif missing:
            nodes = {**nodes, **world.ironic.named(current.scope, missing)}
    with look.asking(this, look.Port.NOVA, memory):
        mine = world.nova.instances_of(current.host)
    if len(mine.difference(nodes.values())) > FEW and not is_whole:
        is_whole = True
        with look.asking(this, look.Port.IRONIC, memory):
            nodes = world.ironic.nodes(current.scope, names)
        with look.asking(this, look.Port.NOVA, memory):
            mine = world.nova.instances_of(current.host)
    with look.asking(this, look.Port.IRONIC, memory):
        nodes = _with_own(this, nodes, mine)
        places = world.ironic.places(nodes)
    ring = ring.placed(places)
    assert ring.deal is not None
    unasked = frozenset() if is_whole else frozenset(
        node for node in memory.nodes if node not in nodes and (
            memory.held is None or before.places.get(node) is not None
            and before.places[node] not in asked))
    used = frozenset(
        place for node, place in places.items()
        if node in own or nodes[node] in mine)
    is_sure = memory.standing.trust is trust.Trust.FULL
    return _Listed(nodes, mine, unasked), dataclasses.replace(
        memory, standing=dataclasses.replace(memory.standing, ring=ring),
        shards=observation.Asked(asked, used), held_before=memory.held,
        held=ring.deal.to_say(current.me) if is_sure
        else ring.deal.held.get(current.me, frozenset()))


def at_gained_shards(this: look.Pass, memory: observation.Memory
                     ) -> observation.Memory:
    """List the shards that have become this service's since its last pass.

    If Ironic does not answer, they are left to the next pass.

    :param this: what shares the ports
    :param memory: what is remembered, and how the service stands
    """
    ring = memory.standing.ring
    gained = ring.shards(this.current.me) - memory.shards.names
    if not gained or not memory.nodes or memory.held is None or (
            memory.standing.trust is not trust.Trust.FULL):
        return memory
    try:
        nodes = this.world.ironic.more(this.current.scope, gained)
        places = this.world.ironic.places(nodes)
    except Exception:
        return memory
    return dataclasses.replace(
        memory, nodes={**memory.nodes, **nodes},
        shards=dataclasses.replace(
            memory.shards, names=memory.shards.names | gained),
        standing=dataclasses.replace(
            memory.standing, ring=ring.placed({**ring.places, **places})))


def _with_own(this: look.Pass, nodes: model.Nodes, mine: frozenset[str]
              ) -> model.Nodes:
    """Add the nodes of this service's instances that were not listed.

    Such a node stays with its instance.
    """
    missing = mine - {instance for instance in nodes.values() if instance}
    if not missing:
        return nodes
    return {**nodes, **this.world.ironic.nodes_of(missing)}
