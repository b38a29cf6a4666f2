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

from nova_ironic_ring.command import snapshot
from nova_ironic_ring import membership
from nova_ironic_ring import ring


@dataclasses.dataclass(frozen=True)
class Share:
    """What a service has, before and after.

    :ivar host: its name
    :ivar nodes: free nodes that the ring maps to it
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
    """

    shares: list[Share]
    moved_nodes: int
    moved_instances: int
    balance: float
    balance_after: float


def plan(seen: snapshot.Snapshot, key: snapshot.Key,
         add: Iterable[str] = (), remove: Iterable[str] = (),
         partitions: int | None = None) -> Plan:
    """Work out what a change of a ring would move.

    An instance goes with the ring where its service is configured so. From a
    service that is removed it goes in any case: whoever removes one for good
    has it fail over.

    :param seen: what was read
    :param key: the ring
    :param add: the names of services that join it
    :param remove: the names of services that leave it
    :param partitions: points on the ring for each member; None for as now
    :raises ValueError: if one that joins is a member, or one that leaves is
        none, or nobody would be left
    """
    now = seen.ring(key)
    if not now.members:
        raise ValueError(f'The ring of {key} has no living member: see '
                         '"nova-ironic-ring show".')
    joining = {membership.canonical(host) for host in add}
    leaving = {membership.canonical(host) for host in remove}
    if joining & now.members:
        raise ValueError(f'"{min(joining & now.members)}" is a member of the '
                         f'ring of {key} already.')
    if leaving - now.members:
        raise ValueError(
            f'"{min(leaving - now.members)}" is no member of the ring of '
            f'{key}: its members are {", ".join(sorted(now.members))}.')
    members = (now.members | joining) - leaving
    if not members:
        raise ValueError(
            f'Nobody would be left in the ring of {key}: keep one member.')
    after = ring.Ring(members, partitions or now.partitions)

    hosts = sorted(now.members | joining)
    free = {host: [0, 0] for host in hosts}
    held = {host: [0, 0] for host in hosts}
    moved_nodes = moved_instances = 0
    for node in seen.served(key):
        old, new = now.owner(node.uuid), after.owner(node.uuid)
        instance = seen.instance_on(node)
        if node.instance is None:
            free[old][0] += 1
            free[new][1] += 1
            moved_nodes += old != new
        elif instance is not None and instance.host is not None:
            host = membership.canonical(instance.host)
            if host not in held:
                continue
            follows = host in leaving or (
                host in seen.profiles
                and seen.profiles[host].mobility == 'follow')
            taker = new if follows else host
            held[host][0] += 1
            held[taker][1] += 1
            moved_instances += taker != host
    shares = [Share(host, *free[host], *held[host]) for host in hosts]
    return Plan(shares, moved_nodes, moved_instances,
                balance({host: free[host][0] + held[host][0]
                         for host in now.members}),
                balance({host: free[host][1] + held[host][1]
                         for host in members}))


def balance(shares: Mapping[str, int]) -> float:
    """Say how evenly nodes are divided.

    :param shares: how many each service has
    :returns: the largest share over the mean one; 1 where all have the same
    """
    total = sum(shares.values())
    return max(shares.values()) * len(shares) / total if total else 1.0
