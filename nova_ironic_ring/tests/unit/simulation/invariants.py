# SPDX-License-Identifier: Apache-2.0

"""What must never happen, and what has to come of it all in the end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
import dataclasses
import typing
from typing import Any

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.tests.unit.simulation import times

if typing.TYPE_CHECKING:
    from nova_ironic_ring.core.passing import node_places
    from nova_ironic_ring.tests.unit.simulation import builds
    from nova_ironic_ring.tests.unit.simulation import host as hosts
    from nova_ironic_ring.tests.unit.simulation import world as worlds

Decision = decisions.Decision

# How long a service has to have been well to be seen by all to live.
_STEADY = 2 * times.REPORT_INTERVAL + 1
# How long a node may be without an owner: three passes, each of which takes
# some seconds itself.
_UNOWNED = 3 * (times.PASS_INTERVAL + 4)

# How many nodes of a service may vanish at any time.
_HANDFUL = 5

#: The services that are written to by a call of a port, from its arguments.
_FORMER: Mapping[str, Callable[..., Iterable[str]]] = {
    'delete_row': lambda node, owner: [owner],
    'take_rows': lambda rows: [each.owner for each in rows.values()],
    'set_instance_host': lambda instance, expected: [expected.host],
    'place_instance': lambda instance, expected, place: [expected.host],
    'end_build': lambda instance, host, is_claimed=True: (
        [host] if host is not None and is_claimed else [])}

_decide = planner.decide


class InvariantError(AssertionError):
    """What must never happen has happened."""


@dataclasses.dataclass(frozen=True)
class Move:
    """A node that went from one service to another.

    :ivar at: when, in seconds
    :ivar node: the node's UUID
    :ivar old: the name of the service that had it
    :ivar new: the name of the service that has it
    """

    at: float
    node: str
    old: str
    new: str


def decide(world: worlds.World, seen: observation.Observation,
           before: observation.Memory, current: settings.Settings
           ) -> planner.Plan:
    """Plan a pass, and see that an equal observation gives an equal plan.

    :param world: the world
    :param seen: what a service sees
    :param before: what it remembers
    :param current: its settings
    """
    plan = _decide(seen, before, current)
    activity = world.services[current.me].activity
    activity.takes = frozenset(
        node for node, step in plan.steps.items()
        if step.decision.takes_instance)
    activity.steps = plan.steps
    activity.ring = seen.view.ring.fingerprint(current.scope)
    # Of each second some.
    if int(seen.at * 10) % 10 == 0:
        equal = dataclasses.replace(
            seen, nodes=dict(reversed(list(seen.nodes.items()))),
            rows=dict(reversed(list(seen.rows.items()))))
        again = _decide(equal, before, current)
        if _comparable(again) != _comparable(plan):
            world.fail(f'Of what is equal come {plan} and {again}')
    return plan


def _comparable(plan: planner.Plan) -> tuple[object, ...]:
    """Return what of two plans is the same, where their order is not."""
    return plan.steps, plan.waits, set(map(repr, plan.happened))


@dataclasses.dataclass(frozen=True)
class _Said:
    """Which ring a service has acknowledged.

    :ivar at: when, in seconds
    :ivar ring: the fingerprint of the ring; None for no ring
    """

    at: float
    ring: str | None


def _every(host: hosts.Host) -> str:
    """Return what stands for each ring of the scope of a service."""
    return ring.Ring((), 1).fingerprint(host.settings.scope)


class Invariants:
    """Sees all that the services do to nodes and instances.

    :ivar moves: the nodes that went from one service to another
    :ivar regrouped: when nodes changed their group, by UUID
    :ivar rescoped: when services did, by canonical name
    """

    def __init__(self, world: worlds.World) -> None:
        """Choose the world.

        :param world: the world
        """
        self.world = world
        self.cloud = world.cloud
        self.moves: list[Move] = []
        self.regrouped: dict[str, float] = {}
        self.rescoped: dict[str, float] = {}
        #: When the owner of each node last changed.
        self._row_since: dict[str, float] = {}
        #: When the service of each instance last changed, or its node did.
        self._instance_since: dict[str, float] = {}
        #: Who had the rows that were deleted and are not there again yet.
        self._former: dict[str, str] = {}
        #: The deaths for which each instance was taken over.
        self._deaths: set[tuple[str, str, int]] = set()
        #: The nodes that are hidden and whose rows were deleted, by the
        #: canonical name of their owner.
        self._vanished: dict[str, set[str]] = {}
        #: The nodes with instances of the service that each was told of.
        self._own: dict[str, dict[str, str]] = {}
        #: What each service has acknowledged, by canonical name, the last one
        #: last.
        self._said: dict[str, list[_Said]] = {}
        #: The ring of each fingerprint that was acknowledged.
        self._rings: dict[str, ring.Ring] = {}

    # What changes

    def hidden(self) -> None:
        """Note that Ironic hides all nodes from now on."""
        self._vanished.clear()

    def row_changed(self, node: str) -> None:
        """Note that a node has another owner, or none.

        :param node: the node's UUID
        """
        self._row_since[node] = self.world.now

    def instance_changed(self, uuid: str) -> None:
        """Note that an instance has another service, or a node.

        :param uuid: the UUID of the instance
        """
        self._instance_since[uuid] = self.world.now

    def listed(self, host: hosts.Host, nodes: model.Nodes) -> None:
        """Note what a service is told of Ironic's nodes.

        :param host: the service
        :param nodes: the instance on each node
        """
        self._own[host.me] = {
            node: uuid for node, uuid in nodes.items()
            if uuid in self.cloud.instances
            and self.cloud.instances[uuid].host_name == host.me}

    def said(self, host: hosts.Host, ring: str | None) -> None:
        """Note that a service has acknowledged a ring.

        :param host: the service
        :param ring: the fingerprint of the ring; None for no ring
        """
        self._said.setdefault(host.me, []).append(_Said(
            self.world.now, _every(host) if ring == model.EVERY_RING
            else ring))

    def went_by(self, host: hosts.Host, fingerprint: str | None,
                known: view.View) -> None:
        """Note which ring a service has acknowledged in a pass.

        :param host: the service
        :param fingerprint: that of the ring; None for no ring
        :param known: what the service has known of the others
        """
        if fingerprint is None:
            return
        if not known.is_trusted:
            self.world.fail(f'{host.name} acknowledges a ring, and does not '
                            'know who lives')
        self.acknowledged(fingerprint, known.ring)

    def acknowledged(self, fingerprint: str, seen: ring.Ring) -> None:
        """Note the ring of a fingerprint.

        :param fingerprint: the fingerprint
        :param seen: the ring
        """
        self._rings[fingerprint] = seen

    # Who lives

    def _is_steady(self, name: str, since: float, long: float = _STEADY
                   ) -> bool:
        """Say whether a service was well for long.

        :param name: its canonical name
        :param since: at what time
        :param long: how long it was well by then, in seconds
        """
        host = self.world.services.get(name)
        # Nobody can see that it lives before its first heartbeat.
        return (host is not None and self.world.is_up(name)
                and host.process.has_beaten
                and since - max(self.world.disturbed_at,
                                host.disturbed_at) > long)

    def _check_by_ring(self, host: hosts.Host, node: str, owner: str,
                       looked_at: float) -> bool:
        """See that an owner has acknowledged the ring by which it is taken.

        What it acknowledges after the last look, nobody can know.

        :returns: whether the node is taken with the consent of its owner
        """
        claim = host.step(node).claim
        if claim is None or claim.ring is None:
            return False
        # By their shards nodes may be for others since.
        found = self._rings.get(claim.ring)
        if self._has_acknowledged(
                owner, {claim.ring, _every(host)}, looked_at) and (
                found is None or found.deal is not None
                or found.owner(node) == host.me):
            return True
        self.world.fail(f'{host.name} takes node {short(node)} with a consent '
                        f'that {owner} has not given')
        return False

    def _has_acknowledged(self, owner: str, rings: Container[str | None],
                          since: float) -> bool:
        """Say whether a service acknowledged a ring at a time, or later."""
        told = self._said.get(owner, [])
        last = [each for each in told if each.at < since][-1:]
        return any(said.ring in rings for said in (
            *last, *(each for each in told if each.at >= since)))

    # Leases

    def check_lease(self, host: hosts.Host, name: str, args: tuple[Any, ...]
                    ) -> None:
        """See that nobody writes after its lease what rests on its view.

        A look is valid for less than this, and a write may wait for a few
        answers after that was asked. A process that was frozen since cannot
        know it.

        :param host: the service
        :param name: the name of the call of a port, as it begins
        :param args: what is passed to it
        """
        former = _FORMER.get(name)
        if former is None or not host.IS_OURS:
            return
        owners = {model.canonical(owner) for owner in former(*args)}
        at = host.activity.services_at
        if owners <= {host.me} or host.frozen_until > at or (
                self.world.now - at < times.DOWN_TIME):
            return
        self.world.fail(
            f'{host.name} calls {name} of {", ".join(sorted(owners))} by '
            f'services that it has read {self.world.now - at:.1f} s ago')

    # Rows

    def check_taking(self, host: hosts.Host, node: str, looked_at: float
                     ) -> None:
        """See whether a service may record a node as its own.

        :param host: the service
        :param node: the node's UUID
        :param looked_at: when it began to look at the node once more
        """
        row = self.cloud.rows.get(node)
        step = host.step(node)
        self._check_last_look(host, node, step, looked_at)
        if row is None or model.canonical(row.owner) == host.me:
            return
        owner = model.canonical(row.owner)
        what = (f'{host.name} takes node {short(node)} of {row.owner} '
                f'({step.decision.name})')
        self.world.log(what)
        self._check_instance(host, node, what)
        # What changes after the last look, nobody can know.
        if self._row_since[node] >= looked_at:
            return
        if self._check_by_ring(host, node, owner, looked_at):
            return
        other = self.world.services.get(owner)
        if other is None or other.driver is not host.driver or (
                step.decision not in (
                    Decision.TAKE_ABANDONED, Decision.TAKE_SILENT)):
            return
        # One that has just come back was silent for all that others can see.
        if self.world.is_benign and other.process.has_beaten and (
                self.world.now - other.disturbed_at > times.DOWN_TIME):
            self.world.fail(f'{what}, where nothing is amiss')
        if host.activity.began_at - other.works_from <= times.QUIET:
            # Its passes fail, or have failed.
            return
        # Whatever ring it goes by.
        if other.group == host.group and self._is_steady(
                owner, host.activity.began_at, times.QUIET):
            self.world.fail(f'{what} without its consent')

    def _check_last_look(self, host: hosts.Host, node: str,
                         step: planner.Step, looked_at: float) -> None:
        """See that what had changed before the last look is respected."""
        claim = step.claim
        row = self.cloud.rows.get(node)
        if claim is None or not host.IS_OURS:
            return
        if claim.instance is not None:
            instance = self.cloud.instances.get(claim.instance)
            if instance is not None and instance.host_name != host.me and (
                    self._instance_since[claim.instance] < looked_at):
                self.world.fail(
                    f'{host.name} takes node {short(node)} with '
                    f'{claim.instance}, which is with {instance.host}')
            return
        owner = row.owner if row else None
        if claim.checks_owner and owner not in (claim.owner, host.name) and (
                self._row_since[node] < looked_at):
            self.world.fail(
                f'{host.name} takes node {short(node)} as if it were '
                f'with {claim.owner}')

    def _check_instance(self, host: hosts.Host, node: str, what: str) -> None:
        """See that no service takes a node with another's instance."""
        found = self.cloud.nodes.get(node)
        uuid = found.instance if found else None
        instance = self.cloud.instances.get(uuid or '')
        if uuid is not None and instance is not None and (
                instance.host_name in self.world.services
                and instance.host_name != host.me
                and self._instance_since[uuid] < host.activity.began_at):
            self.world.fail(f'{what}, with {uuid} of {instance.host}')

    def row_taken(self, host: hosts.Host, node: str, owner: str | None
                  ) -> None:
        """Note that a service has recorded a node as its own.

        :param host: the service
        :param node: the node's UUID
        :param owner: the name of its owner until now
        """
        if owner is None:
            self.world.log(f'{host.name} creates the row of node '
                           f'{short(node)}')
        former = self._former.pop(node, owner)
        if owner == host.name:
            return
        self.row_changed(node)
        if former is None or model.canonical(former) == host.me:
            return
        self.moves.append(Move(self.world.now, node, former, host.name))
        step = host.step(node)
        if step.claim is not None and step.claim.is_abandoned:
            return
        for build in self.world.builds.values():
            if build.node == node:
                build.is_given_away = True
                build.taker = host.me, self.world.lives[host.me]

    def check_deletion(self, host: hosts.Host, node: str, row: clouds.Row
                       ) -> None:
        """See whether a service may delete a row.

        :param host: the service
        :param node: the node's UUID
        :param row: the row
        """
        self.world.log(f'{host.name} deletes the row of node '
                       f'{short(node)} of {row.owner}')
        owner = model.canonical(row.owner)
        found = self.cloud.nodes.get(node)
        uuid = found.instance if found else None
        instance = self.cloud.instances.get(uuid or '')
        if owner != host.me and uuid is not None and instance is not None and (
                instance.host_name == owner
                and owner in self.world.services
                and self._instance_since[uuid] < host.activity.read_at
                and self._is_steady(owner, host.activity.began_at)):
            self.world.fail(
                f'{host.name} deletes the row of node {short(node)} of '
                f'{row.owner}, which has {uuid}')
        # A takeover begins with it, and brings the row back.
        if found is None or not host.IS_OURS or not self.world.is_hidden or (
                node in host.activity.takes):
            return
        gone = self._vanished.setdefault(owner, set())
        gone.add(node)
        rows = sum(model.canonical(one.owner) == owner
                   for one in self.cloud.rows.values()) + len(gone)
        if len(gone) > max(_HANDFUL, rows * 20 // 100):
            self.world.fail(f'{host.name} deletes the row of node '
                            f'{short(node)}, which Ironic only hides')

    def row_deleted(self, host: hosts.Host, node: str, owner: str) -> None:
        """Note that a row was deleted.

        :param host: the service that has done it
        :param node: the node's UUID
        :param owner: the name of its owner until now
        """
        self.row_changed(node)
        if host.me != model.canonical(owner):
            self._former.setdefault(node, owner)

    # Instances

    def instance_taken(self, host: hosts.Host, uuid: str,
                       expected: ports.Expected) -> None:
        """See whether a service may take an instance.

        :param host: the service, which has done it
        :param uuid: the UUID of the instance
        :param expected: what the instance was like
        """
        old = model.canonical(expected.host)
        row = self.cloud.rows.get(expected.node)
        # Who takes one of a dead service has deleted the row.
        step = host.activity.steps.get(expected.node)
        consents = expected.task is None and row is not None and (
            model.canonical(row.owner) == old and step is not None
            and step.decision is Decision.TAKE_INSTANCE)
        if consents and not self._has_acknowledged(
                old, {host.activity.ring, _every(host)},
                host.activity.read_at):
            self.world.fail(f'{host.name} takes {uuid} with a consent that '
                            f'{expected.host} has not given')
        self.world.log(f'{host.name} takes {uuid} of {expected.host}'
                       f'{", which lets it" if consents else ""}')
        self.instance_changed(uuid)
        self._check_elsewhere()
        # It may be taken of this one as well, when it dies.
        self._deaths -= {each for each in self._deaths
                         if each[:2] == (uuid, host.me)}
        if consents:
            return
        if self._is_steady(old, host.activity.began_at):
            self.world.fail(f'{host.name} takes {uuid} of {expected.host}, '
                            'which is well')
        death = uuid, old, self.world.lives[old]
        if death in self._deaths and old not in self.world.services:
            self.world.fail(f'{host.name} takes {uuid}, which was taken '
                            f'before when {expected.host} died')
        self._deaths.add(death)

    def check_failed_build(self, host: hosts.Host, node: str, uuid: str
                           ) -> None:
        """See whether a service may refuse a build.

        :param host: the service
        :param node: the UUID of the node
        :param uuid: the UUID of the instance
        """
        what = f'{host.name} cannot build {uuid} on node {short(node)}'
        self.world.log(what)
        if self.world.is_benign and host.IS_OURS and (
                not host.process.ending
                and not self.world.adversary.spoils(node, uuid)):
            self.world.fail(f'{what}, where nothing is amiss')

    def check_reaped(self, host: hosts.Host, uuid: str) -> None:
        """See whether Nova may clean up after a deleted instance.

        It shuts the instance down, and deletes volumes of it.

        :param host: the service
        :param uuid: the UUID of the instance
        """
        self.give_back(uuid)
        known = self.cloud.deleted.get(uuid)
        # By what the service has listed: another service may have cleaned up
        # since, and an owner may have written the instance into another node.
        for node, found in host.memory.nodes.items():
            if host.IS_OURS and known is not None and (
                    found == uuid and known.node != node):
                self.world.fail(
                    f'{host.name} has {uuid} cleaned up, which Nova had on '
                    f'{known.node} and not on node {short(node)}')

    def give_back(self, uuid: str) -> None:
        """Note that a service frees the node of an instance.

        :param uuid: the UUID of the instance
        """
        build = self.world.builds.get(uuid)
        if build is None or build.between is None:
            return
        service, silence = (self.cloud.services.get(build.host),
                            build.between.process.silence)
        # What is dead must not wake. And by wrong clocks, Nova's API may have
        # deleted an instance of a service that is not even silent.
        build.is_of_the_dead = (
            service is None or service.forced_down
            or silence >= times.FAILOVER_AFTER
            or bool(self.world.skews) and silence < times.DOWN_TIME)

    def check_deployment(self, host: hosts.Host, build: builds.Build) -> None:
        """See whether a service may have Ironic deploy a node.

        :param host: the service
        :param build: the building of an instance that is not on the node
        """
        if host.IS_OURS and not build.is_of_the_dead and (
                not self.world.adversary.has(build.node)):
            self.world.fail(f'{host.name} deploys node {short(build.node)} '
                            f'without {build.instance}')

    def _check_elsewhere(self) -> None:
        harm = self.world.adversary.has_harmed()
        if harm is not None:
            self.world.fail(harm)

    def build_ended(self, host: hosts.Host, uuid: str) -> None:
        """See whether a service may end a build.

        :param host: the service, which has done it
        :param uuid: the UUID of the instance
        """
        self.world.log(f'{host.name} ends the build of {uuid}')
        build = self.world.builds[uuid]
        self._check_elsewhere()
        if not build.is_given_away and self._is_steady(
                build.host, host.activity.began_at, times.QUIET):
            self.world.fail(f'{host.name} ends the build of {uuid} by '
                            f'{build.host}, which is well')

    # Passes

    def planned(self, host: hosts.Host, result: node_places.PassResult
                ) -> None:
        """See what a service has planned.

        :param host: the service
        :param result: what has come of its pass
        """
        members = result.memory.view.members
        said = result.work.said
        if said is None or said.ring is None:
            # Nobody takes anything by it.
            return
        for node, step in result.plan.steps.items():
            if not step.offer:
                continue
            taker = step.offer
            what = (f'{host.name} offers node {short(node)} to '
                    f'{taker}')
            if taker not in members or taker == host.me:
                self.world.fail(f'{what}, which is no member of its ring')
            since = self.world.barred_since.get(taker)
            if since is not None and since < host.activity.began_at:
                self.world.fail(f'{what}, which is disabled or forced down')
            since = self.world.dead_since.get(taker)
            if since is not None and (
                    host.activity.began_at > times.DETECTION + max(
                        since, host.disturbed_at, self.world.disturbed_at,
                        self.world.stalled_until)):
                self.world.fail(f'{what}, which is dead')
            other = self.world.services.get(taker)
            found = self.cloud.nodes.get(node)
            if other is not None and other.group is not None and (
                    not self.world.adversary.has(node)
                    and found is not None and other.group != found.group
                    and self.regrouped.get(node, -1) < host.activity.began_at
                    # It has said since then which group it is in now.
                    and self.rescoped.get(taker, -times.QUIET)
                    + times.QUIET < host.activity.began_at):
                self.world.fail(f'{what}, which does not see it')

    def pass_done(self, host: hosts.Host) -> None:
        """See what has come of a pass.

        :param host: the service
        """
        own = self._own.get(host.me, {})
        for node, uuid in own.items():
            found = self.cloud.nodes.get(node)
            instance = self.cloud.instances.get(uuid)
            if found is not None and found.instance == uuid and (
                    instance is not None and instance.host_name == host.me
                    and node not in host.result.listed and host.IS_OURS):
                self.world.fail(f'{host.name} does not list node '
                                f'{short(node)}, with its own {uuid}')
        for node in host.process.tracked_nodes:
            row = self.cloud.rows.get(node)
            # A look may have begun before, stood still, and end after it.
            if (row is None or model.canonical(row.owner) != host.me) and (
                    self._row_since[node] < host.cleaned_at
                    and host.recorded_at.get(node, 0) < host.cleaned_at):
                self.world.fail(f'{host.name} tracks node {short(node)}, '
                                'and it is not its own')
        self._check_unowned()

    def _check_unowned(self) -> None:
        """See that no node stays without an owner that lives and works.

        The time begins with the last event, when all have found out who is
        absent, or with the record of the node.
        """
        services = self.world.services.values()
        last = max(self.world.changed_at, self.world.work_changed_at, *(
            host.disturbed_at for host in services))
        if self.world.is_hidden or self.world.is_placement_down or (
                self.world.now - last <= times.DETECTION + _UNOWNED):
            return
        for node, found in self.cloud.nodes.items():
            if self.world.adversary.has(node):
                continue
            row = self.cloud.rows.get(node)
            owner = None if row is None else model.canonical(row.owner)
            if self.world.now - self._row_since[node] > _UNOWNED and (
                    self._is_without_owner(owner, last)
                    and self._has_peers(found.group)
                    and self.world.is_free(node)):
                self.world.fail(f'node {short(node)} is with '
                                f'{owner or "nobody"}')

    def _is_without_owner(self, owner: str | None, last: float) -> bool:
        """Say whether a node has no owner, or one that is not to have it.

        :param owner: the canonical name of the owner; None without one
        :param last: when something last befell a service
        """
        # What the ring gives to a service whose passes fail stays as it is
        # until the others know of that.
        is_known = self.world.now > last + times.PATIENCE + _UNOWNED
        services = self.world.services.values()
        is_settled = is_known or all(
            host.has_ironic for host in services if host.lives)
        if owner is None:
            return is_settled
        if not all(host.IS_OURS for host in services):
            return False
        host = self.world.services.get(owner)
        if host is None or not host.lives:
            return owner in self.world.dead_since and is_settled
        return not host.has_ironic and is_known

    def _has_peers(self, group: str) -> bool:
        """Say whether services live and work that a node can be for.

        Those that have no node do not see each other.

        :param group: the conductor group of the node
        """
        failing = {host.me for host in self.world.services.values()
                   if not host.has_ironic}
        members = (self.world.members(group)
                   | self.world.members(None)) - failing
        return bool(members) and members <= {
            model.canonical(row.owner) for row in self.cloud.rows.values()}

    # In the end

    def check_settled(self, groups: list[str | None], is_ours: bool) -> None:
        """See that all nodes are where they belong.

        :param groups: the conductor groups
        :param is_ours: whether all services run our driver
        """
        rings = {group: self._ring(members) for group in groups
                 if (members := self.world.members(group))}
        scarce = self.scarce(groups)
        self._check_elsewhere()
        owed = self.world.writes.left(self.cloud.instances)
        if owed is not None:
            self.world.fail(owed)
        for node, found in self.cloud.nodes.items():
            if self.world.adversary.has(node):
                continue
            group = None if None in groups else found.group
            desired = rings[group].owner(node) if group in rings else None
            row = self.cloud.rows.get(node)
            owner = model.canonical(row.owner) if row else None
            instance = self.cloud.instances.get(found.instance or '')
            if instance is not None and instance.host_name is not None:
                # Who is in another group is nobody's peer here, and never
                # dead: an operator has to move its instances.
                known = self.world.groups.get(str(instance.host_name))
                is_known = is_ours and group == known
                self._check_settled_instance(
                    str(found.instance), instance, desired if is_known
                    else None, owner)
            elif found.instance is not None:
                if is_ours and desired is not None and instance is None:
                    self.world.fail(f'{found.instance} is still on node '
                                    f'{short(node)}')
            elif desired is not None and owner != desired and not (
                    group in scarce and owner in self.world.members(group)):
                self.world.fail(f'node {short(node)} is with {owner} '
                                f'and not with {desired}')
        if is_ours:
            self._check_builds(rings, None in groups)

    def scarce(self, groups: list[str | None]) -> set[str | None]:
        """Return the groups that have fewer nodes than services.

        A service without a node is not known to the others: they may take one
        from each other in turn (the design page, "Limits").

        :param groups: the conductor groups
        """
        return {group for group in groups if len(
            self.world.members(group)) > sum(
                None in groups or found.group == group
                for found in self.cloud.nodes.values())}

    def _ring(self, members: set[str]) -> ring.Ring:
        """Return the ring of services, and see that all agree on it.

        :param members: their canonical names
        """
        known = sorted(members)
        if not known or not self.world.by_shards.issuperset(known):
            return ring.Ring(members, times.PARTITIONS)
        seen = {name: self.world.services[name].memory.view.ring
                for name in known}
        found = seen[known[0]]
        places = {node: each.shard for node, each in self.cloud.nodes.items()
                  if each.shard is not None}
        dealt = dict(found.deal.owners) if found.deal else {}
        for name, each in seen.items():
            if each.deal is None or (each.members, dict(
                    each.deal.owners)) != (found.members, dealt):
                self.world.fail(f'{name} deals the shards in another way than '
                                f'{known[0]}')
        for name in members:
            number = sum(owner == name for owner in dealt.values())
            if number > -(-len(dealt) // len(found.members)):
                self.world.fail(f'{name} has {number} shards of {len(dealt)}')
        return found.placed(places)

    def _check_settled_instance(self, uuid: str, instance: model.Instance,
                                desired: str | None, owner: str | None
                                ) -> None:
        name = str(instance.host_name)
        lives = name in self.world.services
        if desired is not None and (
                not lives or self.cloud.services[name].forced_down):
            self.world.fail(f'{uuid} is with {name}, which is dead')
        # Without a node it is in nobody's ring, and an instance is not taken
        # without consent.
        owners = {model.canonical(row.owner)
                  for row in self.cloud.rows.values()}
        if self.world.follows and desired != name and (
                desired in owners and lives):
            self.world.fail(f'{uuid} is with {name} and not with {desired}')
        if lives and owner != name:
            self.world.fail(f'{uuid} is with {name}, and its node is with '
                            f'{owner}')

    def _check_builds(self, rings: dict[str | None, ring.Ring],
                      is_one_ring: bool) -> None:
        """See that dead services have left no builds behind."""
        for uuid, build in self.world.builds.items():
            if build.host in self.world.services or (
                    build.is_given_away and not self._has_stayed(build)):
                # Nova itself loses a message with the service that it was
                # for, and does not notice. Who has taken the node just before
                # looks for what dies with the giver, but only for as long as
                # it lives itself.
                continue
            found = self.cloud.nodes.get(build.node)
            if found is None or self.world.adversary.has(build.node) or (
                    None if is_one_ring else found.group) not in rings:
                continue
            instance = self.cloud.instances.get(uuid)
            if instance is not None and instance.is_building:
                self.world.fail(f'{uuid} is being built for ever')
            if uuid in self.cloud.allocations.get(build.node, ()) and (
                    instance is None or instance.is_given_up):
                self.world.fail(f'{uuid} keeps node '
                                f'{short(build.node)} allocated')

    def _has_stayed(self, build: builds.Build) -> bool:
        """Say whether a node is with who has taken it from a live giver."""
        name, lives = build.taker
        row = self.cloud.rows.get(build.node)
        return (name in self.world.services and row is not None
                and self.world.lives[name] == lives
                and model.canonical(row.owner) == name)


def short(node: str) -> str:
    """Return a node's number.

    :param node: its UUID
    """
    return node.rpartition('-')[2].lstrip('0')
