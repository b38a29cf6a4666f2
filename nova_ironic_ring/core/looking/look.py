# SPDX-License-Identifier: Apache-2.0

"""The beginning of every pass, the same with both drivers.

It reads the services, and makes the members and the ring of them. It alone
decides how far to trust them.
"""

from collections.abc import Collection, Iterator, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import agreement
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import vanished
from nova_ironic_ring.core.values import model

# The number of passes in which nodes that were believed deleted count, so that
# nodes that vanish one by one reach the limit as well.
_VANISHING_PASSES = 10


def between_passes(this: one_pass.Pass) -> None:
    """Read the services, and nothing else.

    :param this: the look
    :raises one_pass.UnansweredError: if Nova did not answer
    """
    with this.asking(one_pass.Port.NOVA):
        at_services(this)
    if not this.standing.is_trusted:
        # Nova may answer again when the next pass looks.
        this.memory.waits = {}


def at_services(this: one_pass.Pass) -> bool:
    """Look at the services, which makes the ring.

    Without trust, the last members stay in force.

    :param this: the pass
    :returns: whether this service has a record
    """
    world, current, memory = this.world, this.current, this.memory
    # The answer may take long, and is no news of the time until then.
    asked = world.process.now()
    services = world.nova.ring_services()
    own = next((service for service in services
                if service.name == current.me), None)
    if own is None:
        # It is not in the ring while it is disabled or has no record.
        own = world.nova.service(current.host)
        services = services + ([own] if own else [])
        said = world.nova.members([current.host]).get(current.me)
        # With rows alone it says nothing.
        this.said = said if said and said.scope is not None else None
    else:
        this.said = own.said
    memory.own_work = dataclasses.replace(
        memory.own_work, is_known=this.said is not None
        and current.shares(this.said.scope))
    _follow_settings(this)
    was, start = memory.standing, memory.start.look(own)
    watch = memory.watch.look(services, asked, world.process.now())
    heartbeat = trust.Heartbeat(
        own, world.process.longest_gap(memory.watch.at))
    is_late = heartbeat.is_late(watch, current)
    trusted = trust.look(start, heartbeat, is_late)
    if is_late:
        watch = watch.after_outage(
            world.process.now(), was.membership, current)
        memory.agreement = memory.agreement.restarted()
    members = was.membership
    _look_at_work(this, services, watch)
    if trusted is trust.Trust.FULL or (
            not start.is_over or not members.members):
        members = membership.assess(
            services, current, watch, memory.work_watch)
    deal, other_listing = _deal(this, members, services)
    memory.watch, memory.start = watch, start
    this.services_read_at = watch.at
    memory.standing = observation.Standing(
        members, trusted, was.ring.rebuilt(
            members.members, current.partitions, deal),
        world.process.is_ending(), other_listing)
    this.happened.extend(_work_changed(was.membership, memory))
    this.happened.extend(_look_at_rings(this, services))
    if other_listing != was.other_listing:
        this.happened.append(events.ListingDiffers(
            other_listing, current.by_shards))
    this.happened.extend(_list_differs(was.membership, members))
    if members.states != was.membership.states:
        # Read the instances again: they may belong to others now.
        memory.instances = {}
    if members.members != was.membership.members:
        this.happened.append(events.MembersChanged(
            was.membership.members, members))
    if trusted is not was.trust:
        this.happened.append(events.TrustChanged(
            was.trust, trusted, current.down_time))
    return own is not None


def _follow_settings(this: one_pass.Pass) -> None:
    """Forget what new settings invalidate."""
    memory, current = this.memory, this.current
    if memory.settings == current:
        return
    was, memory.settings = memory.settings or current, current
    memory.agreement = memory.agreement.restarted()
    if was.scope != current.scope:
        memory.nodes = {}


def _look_at_rings(this: one_pass.Pass, services: Sequence[model.Service]
                   ) -> Iterator[events.Event]:
    """Log once which services lastingly acknowledge another ring.

    If this service's own record was not written, the others went without it.
    """
    memory, standing = this.memory, this.standing
    before = memory.agreement
    ring = standing.ring.fingerprint(this.current.scope)
    if not standing.is_trusted or not memory.own_work.is_working:
        memory.agreement = before.restarted()
        return
    memory.agreement = before.look(services, agreement.Known(
        memory.watch.at, ring, standing.membership,
        memory.work_watch.cycle), this.current)
    lasting = memory.agreement.lasting
    if lasting - before.lasting:
        yield events.RingsDiffer(lasting - before.lasting)
    agree = (before.lasting - lasting).intersection(
        service.name for service in services if service.ring == ring)
    if agree:
        yield events.RingsAgree(agree)


def _deal(this: one_pass.Pass, members: membership.Membership,
          services: Sequence[model.Service]
          ) -> tuple[shards.Deal | None, frozenset[str]]:
    """Return the deal of shards, if all members divide nodes by shards.

    :returns: the deal, or None; and the members that report another
        ``listing`` than this service has
    """
    current, ring = this.current, this.standing.ring
    said = {service.name: service for service in services}
    known = ring.deal or shards.Deal()
    held: dict[str, frozenset[str]] = {}
    differ = set()
    for host in members.members:
        service = said.get(host)
        by_shards = (current.by_shards if host == current.me
                     else service.by_shards if service is not None
                     else host in known.held)
        held[host] = (service.held if service is not None
                      else known.held.get(host, frozenset()))
        if by_shards is not current.by_shards:
            differ.add(host)
    return (shards.Deal(known.names, held)
            if current.by_shards and not differ else None), frozenset(differ)


def read_all_services(this: one_pass.Pass) -> Sequence[model.Service]:
    """Read all services of Nova, and watch their heartbeats.

    Those that were lost when the pass began, and are back, are lost no more.
    Those that Nova has no longer are forgotten.

    :param this: the pass, which may have begun long before
    """
    process, memory = this.world.process, this.memory
    asked = process.now()
    services = this.world.nova.all_services()
    this.services_read_at = asked
    memory.watch = memory.watch.look(
        services, memory.watch.at, process.now())
    memory.forget_services_but(service.name for service in services)
    members = membership.assess(services, this.current, memory.watch)
    this.alive = frozenset(host for host, state in members.states.items()
                           if not state.is_lost and host != this.current.me)
    if memory.standing.is_trusted:
        # Without trust, what was known stays.
        memory.standing = dataclasses.replace(
            memory.standing,
            membership=memory.standing.membership.corrected(
                members, this.alive))
    return services


def renew(this: one_pass.Pass) -> None:
    """Look at the services again if much was asked since the last look.

    Otherwise a pass in which everything takes long would take nothing.

    :param this: the pass, or the look between two
    """
    if not this.is_valid and not this.is_late:
        read_all_services(this)


def at_all_services(this: one_pass.Pass) -> observation.Others:
    """Look at all services of Nova, also those that are not in the ring.

    It keeps watching them as long as they are read.

    :param this: the pass
    """
    services, memory = read_all_services(this), this.memory
    said = _with_records(this, services)
    _look_at_work(this, said, memory.watch)
    return observation.Others(
        membership.assess(
            said, this.current, memory.watch, memory.work_watch),
        {service.name for service in services} == {this.current.me})


def _with_records(this: one_pass.Pass, services: Sequence[model.Service]
                  ) -> Sequence[model.Service]:
    """Read what services say of themselves that are not in the ring.

    It reads only those of live services that are disabled: the nodes of lost
    ones go to anybody, and the others are about to be in a ring.
    """
    known = this.standing.membership.states
    wanted = sorted(
        host for host, state in membership.assess(
            services, this.current, this.memory.watch).states.items()
        if host not in known and state is membership.State.DISABLED)
    said = this.world.nova.members(wanted) if wanted else {}
    return [service.saying(said[service.name])
            if service.name in said else service for service in services]


def _list_differs(before: membership.Membership, now: membership.Membership
                  ) -> Iterator[events.Event]:
    """Log once how the peer list differs from what the services report."""
    differs = now.unlisted | now.elsewhere
    if differs and (now.unlisted, now.elsewhere) != (
            before.unlisted, before.elsewhere):
        yield events.PeerListDiffers(now.unlisted, now.elsewhere)


def _look_at_work(this: one_pass.Pass, services: Sequence[model.Service],
                  watch: membership.Watch) -> None:
    """Look at what the services report about their passes.

    If this service's own passes fail, or it cannot see that they work, those
    of the others may fail for the same reason.
    """
    memory = this.memory
    memory.work_watch = memory.work_watch.look(services, watch, this.current)
    if not memory.own_work.is_working:
        memory.work_watch = memory.work_watch.restarted(
            memory.standing.membership.with_state(
                membership.State.NOT_WORKING))


def _work_changed(before: membership.Membership, memory: observation.Memory
                  ) -> Iterator[events.Event]:
    """Log the services whose passes fail for long, or work again."""
    failing = membership.State.NOT_WORKING
    were = before.with_state(failing)
    members = memory.standing.membership
    are = members.with_state(failing)
    for host in sorted(are - were):
        yield events.PassesFail(host, memory.work_watch.silence(host))
    for host in sorted(were - are):
        if members.state(host).gives:
            yield events.PassesWork(host)


@dataclasses.dataclass(frozen=True)
class Had:
    """The nodes that this service had before.

    :ivar nodes: their UUIDs
    :ivar unnamed: how many more nodes are missing, where only their number is
        known
    :ivar in_pools: whether they are counted in pools, and have no records
    """

    nodes: Collection[str]
    unnamed: int = 0
    in_pools: bool = False


def at_missing_nodes(this: one_pass.Pass, had: Had, listed: Collection[str]
                     ) -> None:
    """Find out whether too many nodes have vanished to believe them deleted.

    :param this: the pass
    :param had: the nodes that this service has had
    :param listed: UUIDs of the nodes that Ironic has listed
    """
    missing = sorted(set(had.nodes) - set(listed))
    total = len(had.nodes) + had.unnamed
    was, current = this.memory.vanished, this.current
    guard = vanished.look(
        was, vanished.Missing(
            missing, total, this.world.ironic.is_deleted, had.unnamed),
        vanished.Limits(current.vanished_nodes_limit,
                        _VANISHING_PASSES * current.pass_interval),
        this.world.process.now())
    if guard.has_too_many and not was.has_too_many:
        this.happened.append(events.NodesVanished(
            current.host, True, missing, total, had.unnamed, had.in_pools))
    elif was.has_too_many and not guard.has_too_many:
        this.happened.append(events.NodesBack())
    this.memory.vanished = guard
