# SPDX-License-Identifier: Apache-2.0

"""The beginning of every pass, the same with both drivers.

The services are read, of which the members and the ring are made. What of that
is to be trusted is decided here, and nowhere else.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import enum

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.peers import disputes
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import vanished
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings

# Nodes that were believed deleted count for so many passes, so that those that
# vanish one by one reach the limit as well.
_VANISHING_PASSES = 10
# A service with Nova's own driver lets go of a node at once that leaves its
# group. One that is found to have the same node in so many passes has not.
_SILENT_PASSES = 3


class UnansweredError(Exception):
    """Nova or Ironic could not be asked: the pass has ended.

    The cause says why.

    :ivar memory: what is to be remembered
    :ivar happened: the events for the log, until then
    """

    def __init__(self, memory: observation.Memory,
                 happened: Sequence[events.Event]) -> None:
        super().__init__()
        self.memory = memory
        self.happened = happened


@dataclasses.dataclass(frozen=True)
class Pass:
    """What all parts of a pass share.

    :ivar world: the ports
    :ivar current: this service's settings
    :ivar happened: the events for the log, to which each part adds
    """

    world: ports.Ports
    current: settings.Settings
    happened: list[events.Event] = dataclasses.field(default_factory=list)


class Port(enum.Enum):
    """A port without whose answers a pass cannot go on."""

    NOVA = enum.auto()
    IRONIC = enum.auto()


@contextlib.contextmanager
def asking(this: Pass, port: Port, memory: observation.Memory
           ) -> Iterator[None]:
    """Remember what was seen until Nova or Ironic could not be asked.

    Nova's silence says that heartbeats may have been missed; Ironic's says
    nothing of them.

    :param this: the pass
    :param port: which of the two is asked
    :param memory: what is remembered until then
    :raises UnansweredError: if it could not be asked
    """
    try:
        yield
    except Exception as error:
        raise UnansweredError(
            memory.failed(this.world.process.now()) if port is Port.NOVA
            else memory.unanswered(), this.happened) from error


def between_passes(this: Pass, before: observation.Memory
                   ) -> observation.Memory:
    """Read the services, and nothing else.

    What they say of their passes is looked at once a pass, which tells how
    long the passes of this one take as well.

    :param this: what shares the ports
    :param before: what this service remembers
    :raises UnansweredError: if Nova could not be asked
    """
    with asking(this, Port.NOVA, before):
        memory, _ = at_services(this, before, is_pass=False)
    if memory.standing.trust is trust.Trust.FULL:
        return memory
    # All may be well again when the next pass looks.
    return dataclasses.replace(
        memory, waits={}, disputes=memory.disputes.forgotten())


def at_services(this: Pass, before: observation.Memory, is_pass: bool
                ) -> tuple[observation.Memory, bool]:
    """Look at the services, which makes the ring.

    Where what is seen is not to be trusted, the last members stay in force.

    :param this: the pass
    :param before: what this service remembers
    :param is_pass: whether to look at what they say of their passes
    :returns: what is to be remembered, and whether this service has a record
    """
    world, current = this.world, this.current
    services = world.nova.ring_services()
    if is_pass:
        _look_anew(this, services)
    own = next((service for service in services
                if service.name == current.me), None)
    if own is None:
        # It is not in the ring while it is disabled or has no node.
        own = world.nova.service(current.host)
        services = services + ([own] if own else [])
    ended = disputes.Disputes()
    if before.settings != current:
        # New settings may have ended them.
        ended = before.disputes
        was = before.settings or current
        nodes = before.nodes if was.scope == current.scope else {}
        # Where nothing was waited for, nodes may have changed hands twice.
        waits = (before.waits if was.cooperative is current.cooperative
                 else {})
        before = dataclasses.replace(
            before, settings=current, disputes=disputes.Disputes(),
            nodes=nodes, waits=waits)
    watch = before.watch.look(services, world.process.now())
    confidence = trust.look(before.confidence, trust.Heartbeat(
        own, world.process.longest_gap()), watch, current)
    if confidence.bad_at == watch.at:
        watch = watch.restarted(watch.at)
    members, work_watch = before.standing.membership, before.work_watch
    if confidence.trust is trust.Trust.FULL or (
            not confidence.is_started or not members.members):
        members, work_watch = (
            _assess(this, before, services, watch) if is_pass else
            (membership.assess(services, current, watch).working_as(members),
             work_watch))
    elif is_pass:
        work_watch = _look_at_work(this, before, services, watch)
    deal, other_listing = _deal(this, before, members, services)
    standing = observation.Standing(
        members, confidence.trust, before.standing.ring.rebuilt(
            members.members, current.partitions, deal),
        world.process.is_ending(), other_listing)
    memory = dataclasses.replace(
        before, watch=watch, work_watch=work_watch, confidence=confidence,
        standing=standing)
    this.happened.extend(_work_changed(before, memory))
    this.happened.extend(map(events.DisputeEnded, ended.ended(
        disputes.Reason.OPTIONS_CHANGED, members)))
    if is_pass:
        this.happened.extend(_timeout_is_short(this, before, memory))
    if other_listing != before.standing.other_listing:
        this.happened.append(events.ListingDiffers(
            other_listing, current.by_shards))
    this.happened.extend(_list_differs(
        before.standing.membership, memory.standing.membership))
    if members.members != before.standing.membership.members:
        # Read the instances again: they may belong to others now.
        memory = dataclasses.replace(memory, instances={})
        this.happened.append(events.MembersChanged(
            before.standing.membership.members, members))
    if confidence.trust is not before.standing.trust:
        this.happened.append(events.TrustChanged(
            before.standing.trust, confidence.trust, current.down_time))
    return memory, own is not None


def _deal(this: Pass, before: observation.Memory,
          members: membership.Membership, services: Sequence[model.Service]
          ) -> tuple[shards.Deal | None, frozenset[str]]:
    """Say who holds shards, if all members divide the nodes by these.

    :returns: None if they do not; and those who say another ``listing`` than
        this service has
    """
    current, ring = this.current, before.standing.ring
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


def _look_anew(this: Pass, services: Sequence[model.Service]) -> None:
    """Have another row read of a service whose row does not say its scope.

    Another may say it by now, as after Nova's own driver. It is one service at
    a time, for each time all its rows are read, and the next pass knows it.
    """
    current = this.current
    silent = sorted(
        service.name for service in services
        if service.scope is None and service.name != current.me)
    if silent and current.scope.is_limited and current.peers is None:
        turn = int(this.world.process.now() / current.pass_interval)
        this.world.nova.last_passes([silent[turn % len(silent)]])


def at_all_services(this: Pass, memory: observation.Memory
                    ) -> tuple[observation.Others, observation.Memory]:
    """Look at all services of Nova, also those that are not in the ring.

    The watch over them goes on for as long as they are read.

    :param this: the pass
    :param memory: what is remembered
    """
    services = this.world.nova.all_services()
    watch = memory.watch.look(services, memory.watch.at)
    found = membership.assess(
        _with_scopes(this, memory, services, watch), this.current, watch)
    others = observation.Others(
        found, {service.name for service in services} == {this.current.me})
    return others, dataclasses.replace(memory, watch=watch)


def _with_scopes(this: Pass, memory: observation.Memory,
                 services: Sequence[model.Service], watch: membership.Watch
                 ) -> Sequence[model.Service]:
    """Have services that are not in the ring say which nodes they divide.

    Those alone are asked that live and are disabled: what lost ones have goes
    to anybody, and the others are about to be in a ring.
    """
    if this.current.peers is not None:
        return services
    known = memory.standing.membership.states
    wanted = sorted(
        host for host, state in membership.assess(
            services, this.current, watch).states.items()
        if host not in known and state is membership.State.DISABLED)
    scopes = this.world.nova.scopes(wanted) if wanted else {}
    return [dataclasses.replace(
        service, is_asked=True, scope=scopes[service.name])
        if service.name in scopes else service for service in services]


def at_silent_owners(this: Pass, memory: observation.Memory,
                     rows: Mapping[str, model.Row]) -> observation.Memory:
    """Name, once, the services that keep nodes of this one and are no peers.

    :param this: the pass
    :param memory: what is remembered
    :param rows: the rows of nodes that are for this service, by UUID
    """
    silent, before = memory.standing.membership.silent, memory.silent
    counts = {node: before.nodes.get(node, 0) + 1
              for node, row in rows.items() if row.owner_name in silent}
    found = frozenset(
        rows[node].owner_name for node, count in counts.items()
        if count >= _SILENT_PASSES) - before.said
    if found:
        this.happened.append(events.SilentOwners(
            found, this.current.scope))
    return dataclasses.replace(memory, silent=observation.Silent(
        counts, found | (before.said & silent)))


def _list_differs(before: membership.Membership, now: membership.Membership
                  ) -> Iterator[events.Event]:
    """Say once how the peer list differs from what the services say."""
    differs = now.unlisted | now.elsewhere
    if differs and (now.unlisted, now.elsewhere) != (
            before.unlisted, before.elsewhere):
        yield events.PeerListDiffers(now.unlisted, now.elsewhere)


def _look_at_work(this: Pass, before: observation.Memory,
                  services: Sequence[model.Service], watch: membership.Watch
                  ) -> membership.WorkWatch:
    """Look at what the services say of their passes.

    Where this service's own passes fail, or nothing shows that they do not,
    those of the others may fail for the same reason.
    """
    work_watch = before.work_watch.look(services, watch, this.current)
    if before.own_work.is_working:
        return work_watch
    return work_watch.restarted(before.standing.membership.with_state(
        membership.State.NOT_WORKING))


def _assess(this: Pass, before: observation.Memory,
            services: Sequence[model.Service], watch: membership.Watch
            ) -> tuple[membership.Membership, membership.WorkWatch]:
    """Say what the services are.

    One that does not seem to work may have said so in another of its rows.
    """
    work_watch = _look_at_work(this, before, services, watch)
    members = membership.assess(services, this.current, watch, work_watch)
    suspects = members.with_state(membership.State.NOT_WORKING)
    if not suspects:
        return members, work_watch
    said = this.world.nova.last_passes(sorted(suspects))
    failing = before.standing.membership.with_state(
        membership.State.NOT_WORKING)
    services = [dataclasses.replace(service, last_pass=_last_pass_of_suspect(
        said.get(service.name, service.last_pass),
        service.name in suspects - failing)) for service in services]
    work_watch = work_watch.look(services, watch, this.current)
    return membership.assess(
        services, this.current, watch, work_watch), work_watch


def _last_pass_of_suspect(said: model.LastPass | None, is_new: bool
                          ) -> model.LastPass | None:
    """Return what a service that does not seem to work says in all its rows.

    The row that said when the last good pass was may just have gone to another
    service. The next pass says it in another row, which is waited for once.

    :param said: what the rows say that are its own now
    :param is_new: whether it has seemed to work until now
    """
    if said is None or said.at is not None or not is_new:
        return said
    return dataclasses.replace(said, at=model.NEVER)


def _work_changed(before: observation.Memory, memory: observation.Memory
                  ) -> Iterator[events.Event]:
    """Name the services whose passes fail for long, or work again."""
    failing = membership.State.NOT_WORKING
    were = before.standing.membership.with_state(failing)
    members = memory.standing.membership
    are = members.with_state(failing)
    for host in sorted(are - were):
        yield events.PassesFail(host, memory.work_watch.silence(host))
    for host in sorted(were - are):
        if members.state(host).gives:
            yield events.PassesWork(host)


def _timeout_is_short(this: Pass, before: observation.Memory,
                      memory: observation.Memory) -> Iterator[events.Event]:
    """Say if the handover timeout has become too short, or is found to be.

    Two passes are also what this service needs.
    """
    current = this.current
    were = before.work_watch.too_slow(
        before.standing.membership.members, current)
    are = memory.work_watch.too_slow(
        memory.standing.membership.members, current)
    if current.cooperative and are and not were:
        host, needed = max(sorted(are.items()), key=lambda each: each[1])
        yield events.TimeoutTooShort(host, needed, current.handover_timeout)


@dataclasses.dataclass(frozen=True)
class Had:
    """The nodes that this service has had.

    :ivar nodes: their UUIDs
    :ivar unnamed: how many more nodes are missing, where only their number is
        known
    :ivar in_pools: whether they are counted in pools, and have no records
    """

    nodes: Collection[str]
    unnamed: int = 0
    in_pools: bool = False


def at_missing_nodes(this: Pass, memory: observation.Memory, had: Had,
                     listed: Collection[str]) -> observation.Memory:
    """Find out whether too many nodes have vanished to believe it.

    :param this: the pass
    :param memory: what is remembered
    :param had: the nodes that this service has had
    :param listed: UUIDs of the nodes that Ironic has listed
    """
    missing = sorted(set(had.nodes) - set(listed))
    total = len(had.nodes) + had.unnamed
    was, current = memory.vanished, this.current
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
    return dataclasses.replace(memory, vanished=guard)


def at_own_heartbeat(this: Pass, memory: observation.Memory
                     ) -> observation.Memory:
    """Trust nothing where this service has stood still since it looked.

    What it saw of the others is older then than what it has read since.

    :param this: the pass
    :param memory: what is remembered, and how the service stands
    """
    if memory.standing.trust is not trust.Trust.FULL or (
            this.world.process.longest_gap()
            <= trust.longest_gap(this.current)):
        return memory
    this.happened.append(events.TrustChanged(
        trust.Trust.FULL, trust.Trust.BLACKOUT, this.current.down_time))
    return dataclasses.replace(
        memory.failed(this.world.process.now()), standing=dataclasses.replace(
            memory.standing, trust=trust.Trust.BLACKOUT))
