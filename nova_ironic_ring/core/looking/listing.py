# SPDX-License-Identifier: Apache-2.0

"""The nodes and the instances that every pass lists.

With ``listing = shards``, a pass lists only the nodes of some shards, which
this module chooses.
"""

import dataclasses
import itertools

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools

Port = one_pass.Port

#: The most nodes to ask for one by one. If more have left their shards, for
#: instance after a restart or when an operator has set others, all are listed
#: once.
FEW = 20


@dataclasses.dataclass(frozen=True)
class Beginning:
    """What every pass reads first.

    :ivar is_recorded: whether this service has a record
    :ivar nodes: the instance on each node of Ironic
    :ivar mine: the UUIDs of this service's instances
    :ivar narrowed: the nodes that services divide which are limited to some of
        this one's, by UUID
    :ivar unasked: the nodes of the former pass that Ironic was not asked for
        now, because they are in shards of others
    """

    is_recorded: bool
    nodes: model.Nodes
    mine: frozenset[str]
    narrowed: frozenset[str] = frozenset()
    unasked: frozenset[str] = frozenset()


def nodes(this: one_pass.Pass) -> model.Nodes | None:
    """List the nodes before anything else is read, unless it is by shards.

    :param this: the pass
    :raises one_pass.UnansweredError: if Ironic did not answer
    """
    return None if this.current.by_shards else _nodes(this)


def begin(this: one_pass.Pass, found: model.Nodes | None) -> Beginning:
    """Read the services, and this one's instances.

    The listing of nodes takes seconds, or longer than a look at the services
    is valid; and an instance that appears meanwhile is then known to be this
    service's.

    :param this: the pass
    :param found: the nodes, if they were listed before
    :raises one_pass.UnansweredError: if Nova or Ironic did not answer
    """
    with this.asking(Port.NOVA):
        is_recorded = look.at_services(this)
    if found is None and this.view.ring.deal is None:
        found = _nodes(this)
    listed = _list_shards(this) if found is None else _list_all(this, found)
    there = _without_members(this, listed.nodes)
    _look_at_scope(this, there)
    this.memory.nodes = there
    this.view.ring.forget(len(there))
    # The pass sees all changes until then.
    this.memory.changed = ()
    return Beginning(is_recorded, there, listed.mine, _narrowed(this, there),
                     listed.unasked)


def _without_members(this: one_pass.Pass, nodes: model.Nodes) -> model.Nodes:
    """Leave out nodes with the UUIDs of member records.

    Whoever may create nodes in Ironic may choose their UUIDs, and a service
    could not make its record where there is the row of such a node.
    """
    members = {member.uuid_of(host) for host in (
        this.current.me, *this.view.states)}
    return nodes if members.isdisjoint(nodes) else {
        node: instance for node, instance in nodes.items()
        if node not in members}


def _narrowed(this: one_pass.Pass, nodes: model.Nodes) -> frozenset[str]:
    """Return the nodes that services divide with a narrower scope.

    :param nodes: those that were listed
    """
    # There may be thousands of groups: none is compared with each node.
    scopes = {(each.conductor_group and each.conductor_group.lower(),
               each.shard or None)
              for each in this.view.narrower}
    if not scopes:
        return frozenset()
    ironic = this.world.ironic
    groups, shards = ironic.groups(nodes), ironic.places(nodes)
    return frozenset(
        node for node, group in groups.items() if not scopes.isdisjoint(
            itertools.product((None, group), (None, shards.get(node)))))


def _look_at_scope(this: one_pass.Pass, nodes: model.Nodes) -> None:
    """Log once that there is no node in the scope.

    If nodes are divided by shards, this service may have got none.

    :param nodes: those that were listed
    """
    scope = this.current.scope
    empty = scope if not nodes and scope.is_limited and (
        this.view.ring.deal is None) else None
    if empty is not None and empty != this.memory.empty:
        this.happened.append(events.ScopeEmpty(empty))
    this.memory.empty = empty


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


def _nodes(this: one_pass.Pass) -> model.Nodes:
    """List all nodes of the scope."""
    with this.asking(Port.IRONIC):
        nodes: model.Nodes = this.world.ironic.nodes(this.current.scope)
    return nodes


def _list_all(this: one_pass.Pass, nodes: model.Nodes) -> _Listed:
    """Add to all nodes of the scope what belongs to them."""
    memory, current = this.memory, this.current
    with this.asking(Port.NOVA):
        mine = this.world.nova.instances_of(current.host)
    with this.asking(Port.IRONIC):
        if current.scope.is_limited:
            nodes = _with_own(this, nodes, mine)
    memory.shards = observation.Asked()
    memory.held = None
    return _Listed(nodes, mine)


def _list_shards(this: one_pass.Pass) -> _Listed:
    """List the nodes of some shards, and those without one.

    These are the shards that the ring gives to this service, and those in
    which it still has nodes or instances. It asks by UUID for its own nodes in
    no such shard.
    """
    world, current, memory = this.world, this.current, this.memory
    before = memory.view.ring
    assert before.deal is not None
    with this.asking(Port.NOVA):
        own = pools.rows_of_nodes(world.nova.rows_of(current.host)).keys()
    with this.asking(Port.IRONIC):
        # If Ironic hides them all, they are dealt as before.
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
    with this.asking(Port.NOVA):
        mine = world.nova.instances_of(current.host)
    if len(mine.difference(nodes.values())) > FEW and not is_whole:
        is_whole = True
        with this.asking(Port.IRONIC):
            nodes = world.ironic.nodes(current.scope, names)
        with this.asking(Port.NOVA):
            mine = world.nova.instances_of(current.host)
    with this.asking(Port.IRONIC):
        nodes = _with_own(this, nodes, mine)
        places = world.ironic.places(nodes)
    ring = ring.placed(places)
    assert ring.deal is not None
    unasked = frozenset() if is_whole else frozenset(
        node for node in memory.nodes if node not in nodes and (
            memory.held is None or before.places.get(node) is not None
            and before.places[node] not in asked))
    memory.shards = observation.Asked(asked, frozenset(
        place for node, place in places.items()
        if node in own or nodes[node] in mine))
    memory.view = dataclasses.replace(memory.view, ring=ring)
    memory.held = (ring.deal.to_say(current.me) if memory.view.is_trusted
                   else ring.deal.held.get(current.me, frozenset()))
    return _Listed(nodes, mine, unasked)


def at_gained_shards(this: one_pass.Pass) -> None:
    """List the shards that this service has got since its last pass.

    If Ironic does not answer, they are left to the next pass.

    :param this: the look
    """
    memory, ring = this.memory, this.view.ring
    gained = ring.shards(this.current.me) - memory.shards.names
    if not gained or not memory.nodes or memory.held is None or (
            not memory.view.is_trusted):
        return
    try:
        nodes = this.world.ironic.more(this.current.scope, gained)
        places = this.world.ironic.places(nodes)
    except Exception:
        return
    memory.nodes = {**memory.nodes, **nodes}
    memory.shards = dataclasses.replace(
        memory.shards, names=memory.shards.names | gained)
    memory.view = dataclasses.replace(
        memory.view, ring=ring.placed({**ring.places, **places}))


def _with_own(this: one_pass.Pass, nodes: model.Nodes, mine: frozenset[str]
              ) -> model.Nodes:
    """Add the nodes of this service's instances that were not listed.

    Such a node stays with its instance.
    """
    missing = mine - {instance for instance in nodes.values() if instance}
    if not missing:
        return nodes
    return {**nodes, **this.world.ironic.nodes_of(missing)}
