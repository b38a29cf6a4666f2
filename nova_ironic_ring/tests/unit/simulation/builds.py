# SPDX-License-Identifier: Apache-2.0

"""How Nova builds an instance, and deletes it, in many steps.

The scheduler allocates the node, the conductor makes the instance and sends a
message, the service claims the instance, writes it into Ironic's node, has
Ironic deploy the node, and in the end says that it is built. Anything may
happen between two steps.
"""

from __future__ import annotations

import dataclasses
import typing

from nova_ironic_ring.core.taking.building import arrivals
from nova_ironic_ring.core.values import model

if typing.TYPE_CHECKING:
    from nova_ironic_ring.tests.unit.simulation import host as hosts
    from nova_ironic_ring.tests.unit.simulation import world as worlds


class Build:
    """The building of an instance.

    :ivar instance: the UUID of the instance
    :ivar node: the UUID of the node
    :ivar host: canonical name of the service that is to do it
    :ivar is_lost: whether the message was lost with the service
    :ivar is_given_away: whether the node has gone to another service, other
        than from a dead one, when the node had only an allocation
    :ivar taker: canonical name of that other service, and how often it had
        been started
    :ivar between: the service that has written the instance into the node,
        and has not had Ironic deploy the node yet
    :ivar is_of_the_dead: whether that service was to count as dead when its
        node was given back
    """

    def __init__(self, world: worlds.World, instance: str, node: str,
                 host: str) -> None:
        """Note what is to be built.

        :param world: the world
        :param instance: the UUID of the instance
        :param node: the UUID of the node
        :param host: canonical name of the service that is to do it
        """
        self.world = world
        self.instance = instance
        self.node = node
        self.host = host
        self.is_lost = False
        self.is_given_away = False
        self.taker = '', 0
        self.between: hosts.Host | None = None
        self.is_of_the_dead = False

    def allocate(self) -> None:
        """Do what the scheduler does."""
        self.world.cloud.allocations.setdefault(
            self.node, set()).add(self.instance)
        self.world.at(self.world.now + self.world.soon(1), self._create)

    def _create(self) -> None:
        """Do what the conductor does."""
        self.world.cloud.instances[self.instance] = model.Instance(
            None, None, True, 'scheduling')
        self.world.at(self.world.now + self.world.soon(1), self._send)

    def _send(self) -> None:
        host = self.world.services.get(self.host)
        if host is not None and host.is_receiving:
            self.receive(host)
        else:
            self.world.messages.setdefault(self.host, []).append(self)

    def receive(self, host: hosts.Host) -> None:
        """Have a service begin.

        :param host: the service
        """
        # With its service goes a message that was received.
        self.is_lost = True
        host.process.waiting.add(self.instance)
        # Some have to wait for their turn.
        host.later(self.world.random.choice((1, 20)),
                   lambda: self._claim(host))

    def _claim(self, host: hosts.Host) -> None:
        host.process.waiting.discard(self.instance)
        if not self._is_wanted():
            return
        if not host.tracker.take_for_build(arrivals.Arrival(
                self.instance, self.node)):
            self._fail(host)
            return
        self.world.log(f'{host.name} builds {self.instance}')
        self._save(host=host.name, node=self.node, task='spawning')
        self.world.rules.instance_changed(self.instance)
        host.later(1, lambda: self._write(host))

    def _write(self, host: hosts.Host) -> None:
        """Write the instance into Ironic's node."""
        if not self._is_wanted():
            return
        cloud = self.world.cloud
        node = cloud.nodes.get(self.node)
        instance = cloud.instances[self.instance]
        if instance.host_name != host.me:
            return
        # Ironic gives an instance to one node.
        if node is None or node.instance is not None or (
                self.world.adversary.hides(self.instance)) or any(
                each.instance == self.instance
                for each in cloud.nodes.values()):
            self._fail(host)
            return
        node.instance = self.instance
        node.is_deployed = False
        self.between = host
        # It is the one that is on the node from now on.
        self.world.free(self.instance)
        self.world.rules.instance_changed(self.instance)
        host.later(1, lambda: self._deploy(host))

    def _deploy(self, host: hosts.Host) -> None:
        """Have Ironic deploy the node, for whom it may be by now."""
        self.between = None
        node = self.world.cloud.nodes.get(self.node)
        if node is not None and node.instance == self.instance:
            node.is_deployed = True
        elif node is not None:
            self.world.rules.check_deployment(host, self)
        host.later(5, lambda: self._finish(host))

    def _fail(self, host: hosts.Host) -> None:
        """End the build with an error: here, nobody tries another node."""
        self.world.rules.check_failed_build(host, self.node, self.instance)
        self._save(host=None, node=None, is_building=False, task=None)
        self.world.free(self.instance)

    def _finish(self, host: hosts.Host) -> None:
        instance = self.world.cloud.instances.get(self.instance)
        if instance is not None and instance.host_name == host.me and (
                instance.task == 'spawning'):
            self.world.log(f'{host.name} has built {self.instance}')
            self._save(is_building=False, task=None)

    def _is_wanted(self) -> bool:
        """Say whether an instance is still to be built."""
        instance = self.world.cloud.instances.get(self.instance)
        if instance is None or instance.is_given_up:
            self.world.free(self.instance)
            return False
        return instance.is_building and instance.task in (
            'scheduling', 'spawning')

    def _save(self, **changes: typing.Any) -> None:
        self.world.cloud.instances[self.instance] = dataclasses.replace(
            self.world.cloud.instances[self.instance], **changes)


def tear_down(host: hosts.Host, uuid: str) -> None:
    """Take an instance that is being deleted off its node.

    :param host: the service that does it
    :param uuid: the UUID of the instance
    """
    world = host.world
    instance = world.cloud.instances.get(uuid)
    if instance is None or instance.host_name != host.me:
        return
    build = world.builds.get(uuid)
    if build is not None and build.between is host:
        # Nova does one after the other.
        host.later(1, lambda: tear_down(host, uuid))
        return
    node = world.cloud.nodes.get(instance.node or '')
    if node is not None and node.instance == uuid:
        world.rules.give_back(uuid)
        node.instance = None
        world.cloud.allocations.setdefault(str(instance.node), set()).add(uuid)
    host.later(2, lambda: _delete(host, uuid))


def _delete(host: hosts.Host, uuid: str) -> None:
    instance = host.world.cloud.instances.get(uuid)
    if instance is not None and instance.host_name == host.me:
        host.world.log(f'{uuid} is deleted')
        host.world.forget(uuid)


def end_interrupted(host: hosts.Host) -> None:
    """Do what Nova does when a service starts that has lost messages.

    Nova sets such a build to ERROR, and its user deletes the instance.

    :param host: the service
    """
    world = host.world
    for build in world.builds.values():
        instance = world.cloud.instances.get(build.instance)
        row = world.cloud.rows.get(build.node)
        if build.is_lost and row is not None and row.owner == host.name and (
                instance is not None and instance.is_building
                and instance.host is None):
            world.log(f'{build.instance} is deleted: its build was lost')
            world.forget(build.instance)


def recover(host: hosts.Host, uuid: str) -> None:
    """Finish what was being done with an instance, as a restart does.

    :param host: the service that has the instance now
    :param uuid: the UUID of the instance
    """
    instance = host.world.cloud.instances.get(uuid)
    if instance is None or instance.host_name != host.me:
        return
    if instance.is_deleting:
        tear_down(host, uuid)
    else:
        host.world.cloud.instances[uuid] = dataclasses.replace(
            instance, is_building=False, task=None)
