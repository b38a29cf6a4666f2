# SPDX-License-Identifier: Apache-2.0

"""The configuration of a pass, as one value."""

from collections.abc import Iterable
import dataclasses
import functools

from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import model


Scope = model.Scope


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a pass.

    :ivar host: the name of this service
    :ivar down_time: seconds without a heartbeat after which a service is
        absent
    :ivar scope: the nodes that this service and its peers divide
    :ivar peers: canonical names of the only hosts that may be members; None
        if those may that say they have the same scope
    :ivar partitions: points on the ring for each member
    :ivar pass_interval: seconds between two passes of the resource tracker
    :ivar report_interval: seconds between two heartbeats
    :ivar cooperative: whether nodes are handed over with consent; False for a
        service with Nova's own driver, in a forecast
    :ivar handover_timeout: seconds to wait for a node of a live service that
        says nothing of itself, as with Nova's own driver
    :ivar fails_over: whether the instances of dead services are taken over
    :ivar follows: whether instances go with the ring from live ones as well
    :ivar failover_after: seconds without a heartbeat after which an absent
        service is dead; 0 if only an operator's word makes it so
    :ivar failover_configured: the seconds that the configuration has for
        that, which may be too few for a service to end in order
    :ivar vanished_nodes_limit: percent of this service's nodes that may
        disappear from Ironic at once
    :ivar failed_node_wait: seconds for which builds try a node last, after the
        first deployment on it that has failed
    :ivar by_shards: whether nodes are divided, and asked for, by their shards,
        if all members say the same
    :ivar full_update_interval: seconds after which Nova's resource tracker
        updates each node again, changed or not; 0 for in each pass
    :ivar changes_interval: seconds after which Ironic is asked for the nodes
        that have changed, where no pass has asked it; 0 for never
    :ivar kind_rule: what makes the kind of a node, for a service with pools
    :ivar pools_limit: how many pools without instances it makes at most; 0 if
        there is no limit
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
    fails_over: bool = True
    follows: bool = False
    failover_after: float = 0
    failover_configured: float = 0
    vanished_nodes_limit: int = 20
    failed_node_wait: float = 900
    by_shards: bool = False
    full_update_interval: float = 600
    changes_interval: float = 10
    kind_rule: kinds.Rule = kinds.Rule()
    pools_limit: int = 0

    # Asked for each node.
    @functools.cached_property
    def me(self) -> str:
        """The canonical name of this service."""
        return model.canonical(self.host)

    def shares(self, said: Scope | None) -> bool:
        """Return whether a service divides the same nodes, by its report.

        :param said: the nodes that it says it is limited to; None if it says
            nothing, like Nova's own driver
        :returns: True as well where a list of peers decides instead
        """
        if self.peers is not None:
            return True
        return (not self.scope.is_limited if said is None
                else self.scope.is_same(said))


def peers(me: str, scope: Scope,
          peer_list: Iterable[str]) -> frozenset[str] | None:
    """Return the only hosts that may be members, by ``[ironic]``.

    :param me: the name of this service
    :param scope: the nodes that this service is limited to; with a shard, or
        without a conductor group, Nova's own driver ignores the list as well
    :param peer_list: the hosts that serve the conductor group; empty where
        what the services say of themselves decides
    :returns: canonical host names; None if there is no list to go by
    :raises ValueError: if there is a list and this service is not in it; the
        message says what to do
    """
    hosts = frozenset(map(model.canonical, peer_list)) - {''}
    if scope.shard or scope.conductor_group is None or not hosts:
        return None
    if model.canonical(me) not in hosts:
        raise ValueError(
            f'[ironic] peer_list does not name this service ({me}): add it to '
            'the list, on all services of its conductor group, or remove the '
            'list from all of them.')
    return hosts
