# SPDX-License-Identifier: Apache-2.0

"""Ends builds and unshelvings that no service will claim a node for.

A build waits for its turn inside a service, which may end meanwhile. Or its
message waits for a service that has died: after a build has failed, Nova sends
it to the next host that the scheduler chose, minutes later and whether or not
that host lives. Its node has another service by then, and stays allocated.
"""

from collections.abc import Callable, Mapping
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import look as looking
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import builds
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports

#: Seconds in which a build comes to a service, or to its turn at one with
#: Nova's own driver.
PATIENCE = 1800.0
#: Seconds in which a build that has come to a service has its turn there.
#: After a restart, a service with Nova's own driver no longer builds it.
LONGEST = 86400.0
#: Seconds between two searches for such builds.
SEARCH_INTERVAL = 600.0


def is_interrupted(this: one_pass.Pass, found: observation.Unclaimed) -> bool:
    """Decide on a build that was under way when a service starts.

    Nova believes that this service had each build on a node of this service
    before its start. But a peer may have it: one that handed over the node
    after the scheduler had chosen it. Such a build is remembered, and looked
    at again; and so is one that has come to no service yet.

    :param this: what is remembered, and the ports
    :param found: the build
    :returns: whether it has ended with this service's former process
    """
    nova, me, memory = this.world.nova, this.current.me, this.memory
    instance = nova.instances([found.instance]).get(found.instance)
    if instance is None or instance.host_name == me:
        return True
    if instance.host is not None:
        memory.handovers.builds += (observation.LeftBuild(
            found.node, instance.host, frozenset({found.instance})),)
        return False
    at = _waits_at(nova, found.instance)
    if _is_here(this, at):
        return True
    if not any(service.is_ironic for service in nova.services()
               if service.name != me and not service.forced_down):
        return True
    memory.unclaimed += (dataclasses.replace(found, host=at),)
    return False


def end_own(this: one_pass.Pass) -> None:
    """End what had come to this service before it was started.

    Nova finds only builds on nodes that the service lists, and no unshelvings.
    Call it before anything can come to the service. A pass ends what cannot be
    ended yet, and asks again about what may be of another service, such as the
    build of a virtual machine.

    :param this: what is remembered, and the ports
    """
    nova, memory = this.world.nova, this.memory
    for uuid, instance in sorted(nova.unclaimed().items()):
        each = observation.Unclaimed(
            uuid, 'none', this.world.process.now(), is_unread=True)
        with this.going_on(events.HandoversUnknown):
            each = dataclasses.replace(
                each, host=_waits_at(nova, uuid), is_unread=False)
        if not each.is_unread and not _is_here(this, each.host):
            continue
        is_settled = False
        if not each.is_unread:
            with this.going_on(
                    events.BuildNotEnded, each.node, uuid, each.host):
                each = dataclasses.replace(each, node=min(
                    this.world.placement.providers_of(uuid),
                    default=each.node))
                builds.end(this, observation.LeftBuild(
                    each.node, this.current.host, frozenset({uuid})),
                    uuid, instance)
                is_settled = True
        if not is_settled:
            memory.unclaimed += (each,)


def settle(this: one_pass.Pass,
           places: Callable[[], Mapping[str, str]]) -> None:
    """Find the builds without a service, and end those that none will claim.

    A build that has come to a peer waits for its turn there: at most a day,
    and as long as the peer is alive. An error here does not fail the pass:
    instances may have been taken over.

    :param this: the pass
    :param places: names the nodes or pools of this service of which something
        may be allocated, by the UUID of the resource provider; called only if
        builds wait for long
    """
    builds.free_again(this)
    if not this.view.is_trusted:
        return
    if this.world.process.now() - this.memory.searched.at >= SEARCH_INTERVAL:
        _search(this, places)
    world, left = this.world, this.memory.unclaimed
    if not left:
        return
    found: Mapping[str, model.Instance] | None = None
    with this.going_on(events.HandoversUnknown):
        found = world.nova.instances(each.instance for each in left)
    if found is None:
        return
    here = world.process.waiting_builds()
    kept = list[observation.Unclaimed]()
    for each in left:
        instance = found.get(each.instance)
        if instance is None or not instance.is_wanted or (
                each.instance in here):
            continue
        known: observation.Unclaimed | None = each
        if each.is_unread:
            with this.going_on(events.HandoversUnknown):
                known = _read(this, each)
        if known is None:
            continue
        kept.append(known)
        if known.is_unread:
            continue
        with this.going_on(
                events.BuildNotEnded, known.node, known.instance, known.host):
            if _end(this, known, instance):
                kept.remove(known)
    this.memory.unclaimed = tuple(kept)


def _read(this: one_pass.Pass, each: observation.Unclaimed
          ) -> observation.Unclaimed | None:
    """Find out whether a build is of this service.

    It is if it had come to this service, whoever has the node by now, or if it
    has a node or a pool of this service.

    :returns: None if it is not
    :raises Exception: if Nova or Placement does not answer
    """
    nova = this.world.nova
    at = _waits_at(nova, each.instance)
    providers = this.world.placement.providers_of(each.instance)
    rows = nova.rows(providers) if providers else {}
    places = [row.pool or provider for provider, row in rows.items()
              if row.owner_name == this.current.me]
    if not places and not _is_here(this, at):
        return None
    return dataclasses.replace(
        each, node=min(places or providers, default=each.node), host=at,
        is_unread=False)


def _end(this: one_pass.Pass, each: observation.Unclaimed,
         instance: model.Instance) -> bool:
    """End a build if no service will claim it.

    :returns: whether nothing is left to do
    """
    over = _over(this, each)
    if over is None or not this.is_valid:
        return False
    builds.end(this, observation.LeftBuild(
        each.node, over.host, frozenset({each.instance})),
        each.instance, instance)
    return True


def _search(this: one_pass.Pass,
            places: Callable[[], Mapping[str, str]]) -> None:
    """Remember the builds without a service that have a node of this service.

    Most builds are claimed soon: those that had no service in the search
    before are looked at.
    """
    world, memory = this.world, this.memory
    now, before = world.process.now(), memory.searched.waiting
    with this.going_on(events.HandoversUnknown):
        waiting = frozenset(
            uuid for uuid, instance in world.nova.unclaimed().items()
            if instance.is_wanted)
        here = world.process.waiting_builds()
        left = {uuid for uuid in waiting & before if uuid not in here}
        left -= {each.instance for each in memory.unclaimed}
        found = [
            observation.Unclaimed(uuid, name, now)
            for provider, name in (places() if left else {}).items()
            for uuid in sorted(left & world.placement.consumers(provider))]
        memory.unclaimed += tuple(found)
        memory.searched = observation.Search(now, waiting)


def _waits_at(nova: ports.Nova, instance: str) -> str | None:
    """Return the service that a build, or an unshelving, waits at.

    What was given to the next service, and has not come there after long, has
    been lost.

    :returns: None if it has come to none yet, or is on its way to the next
    """
    arrival = nova.arrived_at(instance)
    return None if arrival is None or (
        arrival.given_up is not None and arrival.given_up < PATIENCE
    ) else arrival.host


def _is_here(this: one_pass.Pass, host: str | None) -> bool:
    """Return whether the service that a build has come to is this one."""
    return host is not None and model.canonical(host) == this.current.me


@dataclasses.dataclass(frozen=True)
class _Over:
    """That no service will claim a build.

    :ivar host: the name of the service that it has died with; None if it was
        lost on its way
    """

    host: str | None = None


def _over(this: one_pass.Pass, each: observation.Unclaimed) -> _Over | None:
    """Return why no service will build what none has claimed, if so."""
    def is_lost(host: str) -> bool:
        if _is_here(this, host):
            return True
        looking.again(this)
        return this.view.is_lost(host)

    waits = this.world.process.now() - each.since
    if waits >= LONGEST:
        return _Over()
    if waits < PATIENCE and (each.host is None or not is_lost(each.host)):
        return None
    # It may have gone to another service since it was found.
    arrival = this.world.nova.arrived_at(each.instance)
    if arrival is None:
        return _Over()
    if arrival.given_up is not None:
        return _Over() if arrival.given_up >= PATIENCE else None
    return _Over(arrival.host) if is_lost(arrival.host) else None
