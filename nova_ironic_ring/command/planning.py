# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a change of a ring would move, before it is made."""

from collections.abc import Iterable, Mapping
import dataclasses

from nova_ironic_ring.command import prospect
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core import membership
from nova_ironic_ring.core import model


@dataclasses.dataclass(frozen=True)
class Share:
    """What a service has, before and after.

    :ivar host: its name
    :ivar nodes: free nodes that are recorded for it
    :ivar nodes_after: the same after the change
    :ivar instances: instances that belong to it
    :ivar instances_after: the same after the change
    """

    host: str
    nodes: int
    nodes_after: int
    instances: int
    instances_after: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """What would come of a change.

    :ivar shares: of each service
    :ivar moved_nodes: free nodes that change hands
    :ivar moved_instances: instances that change hands
    :ivar balance: the largest share of all nodes over the mean one
    :ivar balance_after: the same after the change
    :ivar is_settled: whether nothing moves in the end
    """

    shares: list[Share]
    moved_nodes: int
    moved_instances: int
    balance: float
    balance_after: float
    is_settled: bool = True


def plan(seen: snapshot.Snapshot, key: snapshot.Key,
         change: prospect.Change) -> Plan:
    """Work out what a change of a ring would move.

    All its services run their passes in memory, until nothing moves.

    :param seen: what was read
    :param key: the ring
    :param change: the change
    :raises ValueError: if one that joins is a member, or one that leaves or is
        disabled is none, or nobody would be left
    """
    members, after = _members(seen, key, change)
    ring = prospect.of(seen, key, change)
    outcome = ring.run()
    nodes = {node.uuid: node for node in seen.served(key)}
    old = {node: model.canonical(row.owner)
           for node, row in seen.rows.items() if node in nodes}
    new = {node: model.canonical(owner)
           for node, owner in outcome.owners.items() if node in nodes}
    free = {node for node in nodes if nodes[node].instance is None}
    held = {instance.uuid: model.canonical(instance.host)
            for node in nodes.values()
            if (instance := seen.instance_on(node)) and instance.host}
    moved = {uuid: model.canonical(outcome.hosts.get(uuid, host))
             for uuid, host in held.items()}
    hosts = sorted({
        *members, *after, *held.values(), *moved.values(),
        *(old[node] for node in free & old.keys()),
        *(new[node] for node in free & new.keys())})
    shares = [Share(
        host,
        sum(old.get(node) == host for node in free),
        sum(new.get(node) == host for node in free),
        sum(each == host for each in held.values()),
        sum(each == host for each in moved.values())) for host in hosts]
    return Plan(
        shares,
        sum(old.get(node) != new.get(node) for node in free),
        sum(held[uuid] != moved[uuid] for uuid in held),
        balance({share.host: share.nodes + share.instances
                 for share in shares if share.host in members}),
        balance({share.host: share.nodes_after + share.instances_after
                 for share in shares if share.host in after}),
        outcome.is_settled)


def _members(seen: snapshot.Snapshot, key: snapshot.Key,
             change: prospect.Change) -> tuple[frozenset[str], frozenset[str]]:
    """Return the members of a ring now and after a change.

    :raises ValueError: as :func:`plan`
    """
    now = seen.ring(key).members
    joining = _names(change.add)
    leaving = _names(change.remove) | _names(change.disable)
    if not now and not joining:
        raise ValueError(f'The ring of {key} has no living member: see '
                         '"nova-ironic-ring show".')
    if joining & now:
        raise ValueError(f'"{min(joining & now)}" is a member of the '
                         f'ring of {key} already.')
    known = now | {
        host for host in seen.hosts if seen.key(host) == key
        and seen.state(host) is not membership.State.GONE}
    if leaving - known:
        raise ValueError(
            f'"{min(leaving - known)}" is no member of the ring of '
            f'{key}: its members are {", ".join(sorted(now))}.')
    after = (now | joining) - leaving
    if not after:
        raise ValueError(
            f'Nobody would be left in the ring of {key}: keep one member.')
    return now, after


def _names(hosts: Iterable[str]) -> frozenset[str]:
    return frozenset(map(model.canonical, hosts))


def balance(shares: Mapping[str, int]) -> float:
    """Say how evenly nodes are divided.

    :param shares: how many each service has
    :returns: the largest share over the mean one; 1 where all have the same
    """
    total = sum(shares.values())
    return max(shares.values()) * len(shares) / total if total else 1.0
