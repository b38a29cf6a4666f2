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

"""The configuration that a pass goes by, as one value."""

from collections.abc import Iterable
import dataclasses

from nova_ironic_ring.core import model


@dataclasses.dataclass(frozen=True)
class Scope:
    """Which of Ironic's nodes a service and its peers divide.

    :ivar conductor_group: only the nodes of this group; the empty string is
        Ironic's default group; None for the nodes of all groups
    :ivar shard: only the nodes of this shard, if any
    """

    conductor_group: str | None = None
    shard: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the service is limited to some of Ironic's nodes."""
        return self.conductor_group is not None or bool(self.shard)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a pass goes by.

    :ivar host: the name of this service
    :ivar down_time: seconds without a heartbeat after which a service is
        absent
    :ivar scope: the nodes that this service and its peers divide
    :ivar peers: canonical names of the only hosts that may be members; None
        if all may
    :ivar partitions: points on the ring for each member
    :ivar pass_interval: seconds between two passes of the resource tracker
    :ivar report_interval: seconds between two heartbeats
    :ivar cooperative: whether nodes are handed over with consent
    :ivar handover_timeout: seconds to wait for the consent of a live owner
    :ivar measures_passes: whether that is no less than two passes, by the
        slower of the two services, as they have lately been
    :ivar fails_over: whether the instances of dead services are taken over
    :ivar follows: whether instances go with the ring from live ones as well
    :ivar failover_after: seconds without a heartbeat after which an absent
        service is dead; 0 if only an operator's word makes it so
    :ivar vanished_nodes_limit: percent of this service's nodes that may
        disappear from Ironic at once
    """

    host: str
    down_time: float = 60
    scope: Scope = Scope()
    peers: frozenset[str] | None = None
    partitions: int = 32
    pass_interval: float = 60
    report_interval: float = 10
    cooperative: bool = True
    handover_timeout: float = 120
    measures_passes: bool = False
    fails_over: bool = True
    follows: bool = False
    failover_after: float = 0
    vanished_nodes_limit: int = 20

    @property
    def me(self) -> str:
        """The canonical name of this service."""
        return model.canonical(self.host)


def peers(me: str, scope: Scope,
          peer_list: Iterable[str]) -> frozenset[str] | None:
    """Say which hosts alone may be members, from ``[ironic]`` in nova.conf.

    :param me: the name of this service
    :param scope: the nodes that this service is limited to; Nova wants one
        service for each shard, and ignores the peer list then
    :param peer_list: the hosts that serve the conductor group
    :returns: canonical host names; None if every host may be a member
    :raises ValueError: if the peer list is needed and this service is not in
        it; the message says what to do
    """
    if scope.shard:
        return frozenset({model.canonical(me)})
    if scope.conductor_group is None:
        return None
    hosts = frozenset(map(model.canonical, peer_list)) - {''}
    if not hosts:
        raise ValueError(
            '[ironic] conductor_group is set and [ironic] peer_list is empty: '
            'list there the host names of all nova-compute services of the '
            f"group, this one's ({me}) among them.")
    if model.canonical(me) not in hosts:
        raise ValueError(
            f'[ironic] peer_list does not name this service ({me}): add it to '
            'the list, on all services of its conductor group.')
    return hosts
