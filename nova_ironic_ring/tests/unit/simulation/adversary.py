# SPDX-License-Identifier: Apache-2.0

"""The owner of some nodes, who writes into them whatever Ironic takes.

Ironic lets members of the project that owns a node change its properties, its
traits, its class and, while no instance has the node, its instance_uuid
(``baremetal:node:update`` and ``baremetal:node:update:*`` in its policy). It
gives an instance to one node only, whoever asks. Group, shard and owner are
for administrators, whose slips are played as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import random
import uuid

from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds

#: Servers of another hypervisor, on hosts that are dead: one is forced down,
#: and the heartbeat of the other has stood still for ever.
ELSEWHERE = {
    'kvm-server-1': model.Instance('kvm-1', 'kvm-1'),
    'kvm-server-2': model.Instance('kvm-2', 'kvm-2', task='rebooting')}

_KINDS = (
    None, pools.Kind('CUSTOM_GOLD'), pools.Kind('CUSTOM_BAREMETAL'),
    pools.Kind('X' * 255), pools.Kind('CUSTOM_GOLD', frozenset({'CUSTOM_X'})),
    pools.Kind('CUSTOM_GOLD', frozenset(), frozenset({('\n', '\x00' * 9)})))


class Adversary:
    """Writes into its nodes, a little at a time.

    :ivar nodes: the UUIDs of its nodes, those included that are hidden now
    :ivar named: the instances that it has ever written into a node
    :ivar rests: whether it does nothing for now
    """

    def __init__(self, cloud: clouds.Cloud, log: Callable[[str], None],
                 seed: int) -> None:
        """Choose the cloud.

        :param cloud: the cloud
        :param log: adds a line to the timeline
        :param seed: what all that it does comes from; the order of all else
            does not depend on it
        """
        self.cloud = cloud
        self.nodes: set[str] = set()
        self.named: set[str] = set()
        self.rests = False
        #: The conductor groups and the shards that an administrator may give
        #: to a node; none where that is not played.
        self.groups: Sequence[str | None] = ()
        self.shards: Sequence[str | None] = ()
        self._log = log
        self._random = random.Random(seed)
        self._hidden: dict[str, clouds.Node] = {}

    def own(self, node: str) -> None:
        """Give it a node.

        :param node: the node's UUID
        """
        if not self.nodes:
            self.cloud.instances |= ELSEWHERE
            for instance, known in ELSEWHERE.items():
                self.cloud.allocations[str(known.host)] = {instance}
            hosts = {str(each.host) for each in ELSEWHERE.values()}
            self.cloud.other_drivers |= hosts
            for host in sorted(hosts):
                self.cloud.services[host] = model.Service(
                    host, clouds.EPOCH, forced_down=host == 'kvm-1')
        self.nodes.add(node)

    def has(self, node: str | None) -> bool:
        """Say whether a node is its own.

        :param node: the node's UUID, if there is one
        """
        return node in self.nodes

    def spoils(self, node: str | None, instance: str) -> bool:
        """Say whether a build may fail because of what it has written.

        :param node: the UUID of the node of the build, if it has one
        :param instance: the UUID of the instance
        """
        return self.has(node) or instance in self.named

    def hides(self, instance: str) -> bool:
        """Say whether a node has an instance that is hidden now.

        :param instance: the UUID of the instance
        """
        return any(each.instance == instance
                   for each in self._hidden.values())

    def has_harmed(self) -> str | None:
        """Say what has become of the servers of the other hypervisor.

        :returns: None if nothing has; a user may have deleted one
        """
        for name, known in ELSEWHERE.items():
            found = self.cloud.instances.get(name, known)
            if self.nodes and (found.host, found.node) != (
                    known.host, known.node):
                return f'{name} of {known.host} is with {found.host} now'
        return None

    def rest(self) -> None:
        """Stop, with all that is written as it is, and no node hidden."""
        self.rests = True
        for node in sorted(self._hidden):
            self._show(node)

    def act(self) -> None:
        """Write something, or most of the time nothing."""
        if self.rests or not self.nodes or self._random.random() > 0.1:
            return
        node = self._random.choice(sorted(self.nodes))
        if node in self._hidden:
            self._show(node)
            return
        if node not in self.cloud.nodes:
            return
        acts: list[Callable[[str], None]] = [
            self._write_instance, self._write_instance, self._write_kind,
            self._set_maintenance, self._hide]
        if self.groups:
            acts.append(self._regroup)
        if self.shards:
            acts.append(self._reshard)
        self._random.choice(acts)(node)

    def _write_instance(self, node: str) -> None:
        found = self.cloud.nodes[node]
        if found.instance in self.named:
            self._say(node, 'has no instance')
            found.instance = None
            return
        if found.instance is not None:
            # Ironic refuses to write over it.
            return
        value = self._random.choice([
            *sorted(self.cloud.instances), *sorted(self.cloud.deleted),
            str(uuid.UUID(int=self._random.getrandbits(128)))])
        if self.hides(value) or any(
                each.instance == value for each in self.cloud.nodes.values()):
            # Another node has it.
            return
        self.named.add(value)
        found.instance = value
        self._say(node, f'names {value}')

    def _write_kind(self, node: str) -> None:
        self.cloud.nodes[node].kind = self._random.choice(_KINDS)
        self._say(node, 'is of another kind')

    def _set_maintenance(self, node: str) -> None:
        found = self.cloud.nodes[node]
        found.is_ready = not found.is_ready
        self._say(node, f'is ready: {found.is_ready}')

    def _regroup(self, node: str) -> None:
        self.cloud.nodes[node].group = self._random.choice(self.groups) or ''
        self._say(node, f'is in group "{self.cloud.nodes[node].group}"')

    def _reshard(self, node: str) -> None:
        self.cloud.nodes[node].shard = self._random.choice(self.shards)
        self._say(node, f'is in shard {self.cloud.nodes[node].shard}')

    def _hide(self, node: str) -> None:
        """Give the node to an owner whose nodes Nova does not see."""
        self._hidden[node] = self.cloud.nodes.pop(node)
        self._say(node, 'is hidden')

    def _show(self, node: str) -> None:
        self.cloud.nodes[node] = self._hidden.pop(node)
        self._say(node, 'is shown again')

    def _say(self, node: str, what: str) -> None:
        self._log(f'of the adversary: node {node.lstrip("0-")[:8]} {what}')
