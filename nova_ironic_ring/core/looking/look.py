# SPDX-License-Identifier: Apache-2.0

"""The beginning of every pass, the same with both drivers.

It reads the services, and makes the members and the ring of them. It alone
decides how far to trust them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
import dataclasses

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import vanished
from nova_ironic_ring.core.peers import view
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
    if not this.view.is_trusted:
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
    services = world.nova.services()
    own = next((service for service in services
                if service.name == current.me), None)
    this.said = world.nova.members([current.host]).get(
        current.me) if own is None else own.said
    memory.own_work = dataclasses.replace(
        memory.own_work, is_known=this.said is not None
        and current.shares(this.said.scope))
    _follow_settings(this)
    was = memory.view
    watch = memory.watch.look(
        services, asked, world.process.now(), but={current.me})
    has_started = watch.has_moved(current.me)
    is_late = trust.is_late(
        own, world.process.longest_gap(memory.watch.at), watch, current)
    trusted = trust.look(own is not None and has_started, is_late)
    if is_late:
        watch = watch.after_outage(
            world.process.now(), was.with_state(membership.State.ABSENT),
            current)
        memory.agreement = memory.agreement.restarted()
    _look_at_work(this, services, watch)
    found = view.assess(services, current, watch, memory.work_watch)
    if trusted is not trust.Trust.FULL and has_started and was.members:
        found = dataclasses.replace(
            was, services={**was.services, **found.services})
    deal, other_listing = _deal(this, found)
    memory.watch = watch
    this.services_read_at = watch.at
    memory.view = dataclasses.replace(
        found, trust=trusted, ring=was.ring.rebuilt(
            found.members, current.partitions, deal),
        is_ending=world.process.is_ending(), other_listing=other_listing)
    this.happened.extend(_changes(this, was))
    return own is not None


def _changes(this: one_pass.Pass, was: view.View) -> Iterator[events.Event]:
    """Log what has changed, and forget what follows from what was before."""
    now, current = this.view, this.current
    yield from _work_changed(was, this.memory)
    yield from _look_at_rings(this)
    if now.other_listing != was.other_listing:
        yield events.ListingDiffers(now.other_listing, current.by_shards)
    differs = now.unlisted | now.elsewhere
    if differs and (now.unlisted, now.elsewhere) != (
            was.unlisted, was.elsewhere):
        yield events.PeerListDiffers(now.unlisted, now.elsewhere)
    if now.peers != was.peers:
        # Read the instances again: they may belong to others now.
        this.memory.instances = {}
    if now.members != was.members:
        yield events.MembersChanged(was.members, now)
    if now.trust is not was.trust:
        yield events.TrustChanged(was.trust, now.trust, current.down_time)


def _follow_settings(this: one_pass.Pass) -> None:
    """Forget what new settings invalidate."""
    memory, current = this.memory, this.current
    if memory.settings == current:
        return
    was, memory.settings = memory.settings or current, current
    memory.agreement = memory.agreement.restarted()
    if was.scope != current.scope:
        memory.nodes = {}


def _look_at_rings(this: one_pass.Pass) -> Iterator[events.Event]:
    """Log once which services lastingly acknowledge another ring.

    If this service's own record was not written, the others went without it.
    """
    memory, known = this.memory, this.view
    before, current = memory.agreement, this.current
    if not known.is_trusted or not memory.own_work.is_working:
        memory.agreement = before.restarted()
        return
    memory.agreement = before.look(
        known, memory.watch.at, memory.work_watch.cycle, current)
    lasting = memory.agreement.lasting
    if lasting - before.lasting:
        yield events.RingsDiffer(lasting - before.lasting)
    agree = frozenset(
        host for host in before.lasting - lasting
        if (said := known.said(host)) is not None and said.consents(
            known.ring.fingerprint(current.scope), current.scope))
    if agree:
        yield events.RingsAgree(agree)


def _deal(this: one_pass.Pass, found: view.View
          ) -> tuple[shards.Deal | None, frozenset[str]]:
    """Return the deal of shards, if all members divide nodes by shards.

    :returns: the deal, or None; and the members that report another
        ``listing`` than this service has
    """
    current, known = this.current, this.view.ring.deal or shards.Deal()
    said = {host: found.said(host) or model.Member()
            for host in found.members}
    differ = frozenset(
        host for host, each in said.items() if host != current.me
        and each.by_shards is not current.by_shards)
    if differ or not current.by_shards:
        return None, differ
    return shards.Deal(known.names, {
        host: each.held for host, each in said.items()}), differ


def again(this: one_pass.Pass) -> None:
    """Read the services again, in the middle of a pass.

    Those that were lost when the pass began, and are back, are lost no more.
    The ring stays.

    :param this: the pass, which may have begun long before
    """
    process, memory = this.world.process, this.memory
    asked = process.now()
    services = this.world.nova.services()
    this.services_read_at = asked
    memory.watch = memory.watch.look(
        services, memory.watch.at, process.now(), but={this.current.me})
    if memory.view.is_trusted:
        # Without trust, what was known stays.
        memory.view = memory.view.corrected(view.assess(
            services, this.current, memory.watch, memory.work_watch))


def renew(this: one_pass.Pass) -> None:
    """Read the services again if much was asked since the last look.

    Otherwise a pass in which everything takes long would take nothing.

    :param this: the pass, or the look between two
    """
    if not this.is_valid and not this.is_late:
        again(this)


def at_new_services(this: one_pass.Pass, hosts: Iterable[str]) -> None:
    """Read the services again if one of these is not known.

    It is new, or Nova has it no longer.

    :param this: the pass, or the look between two
    :param hosts: their names
    """
    if any(model.canonical(host) not in this.view.services for host in hosts):
        again(this)


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
            memory.view.with_state(
                membership.State.NOT_WORKING))


def _work_changed(was: view.View, memory: observation.Memory
                  ) -> Iterator[events.Event]:
    """Log the services whose passes fail for long, or work again."""
    failing = membership.State.NOT_WORKING
    were, are = was.with_state(failing), memory.view.with_state(failing)
    for host in sorted(are - were):
        yield events.PassesFail(host, memory.work_watch.silence(host))
    for host in sorted(were - are):
        if memory.view.state(host).gives:
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
