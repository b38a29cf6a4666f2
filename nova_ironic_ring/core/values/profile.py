# SPDX-License-Identifier: Apache-2.0

"""What a service reports about itself to the others.

Without a peer list, services with the same scope make one ring. The other
services ignore the rest, because each uses its own configuration; the command
compares it.
"""

from collections.abc import Iterable
import dataclasses
import hashlib

from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import settings

# Longer lists are left out: the profile is in the row of each node.
_MOST_NAMES = 50

#: The version of what services write into their records for each other. A
#: service with another version acknowledges no ring of this one. Profiles only
#: grow, so that services of any two versions find each other.
PROTOCOL = 5


@dataclasses.dataclass(frozen=True)
class Profile:
    """The configuration that services of one ring have to agree on.

    :ivar conductor_group: the group that the service is limited to; None if
        there is no limit
    :ivar shard: the shard that the service is limited to, if any
    :ivar peers: a fingerprint of its peer list; None if every host may be a
        member
    :ivar names: the hosts of its peer list, unless they are very many
    :ivar partitions: points on the ring for each member
    :ivar mobility: what it does with instances
    :ivar failover_after: seconds of silence after which a service is dead to
        it; 0 if only an operator's word makes it so
    :ivar failover_configured: the seconds that its configuration has for that;
        0 as well of releases that did not say it yet
    :ivar listing: ``shards`` if it divides nodes by their shards, where all
        members say so; else ``all``, as releases that did not say it yet
    :ivar protocol: the version of the protocol that the service speaks
    :ivar capabilities: the capabilities that make a kind of node, in order;
        None for all, as releases have it that do not say this
    :ivar traits: the traits that make one, likewise
    :ivar pools_limit: how many pools without instances it makes at most; 0 if
        there is no limit
    """

    conductor_group: str | None = None
    shard: str | None = None
    peers: str | None = None
    names: tuple[str, ...] = ()
    partitions: int = 32
    mobility: str = 'failover'
    failover_after: float = 0
    listing: str = 'all'
    protocol: int = PROTOCOL
    capabilities: tuple[str, ...] | None = None
    traits: tuple[str, ...] | None = None
    pools_limit: int = 0
    failover_configured: float = 0

    @property
    def scope(self) -> settings.Scope:
        """The nodes that the service and its peers divide."""
        return settings.Scope(self.conductor_group, self.shard)

    @property
    def kind_rule(self) -> kinds.Rule:
        """What makes the kind of a node, where the service has pools."""
        return kinds.Rule(*(
            None if names is None else frozenset(names)
            for names in (self.capabilities, self.traits)))


def of(current: settings.Settings) -> Profile:
    """Return the profile of a service.

    :param current: its settings
    """
    peers = current.peers or ()
    return Profile(
        current.scope.conductor_group, current.scope.shard,
        None if current.peers is None else fingerprint(*current.peers),
        tuple(sorted(peers)) if len(peers) <= _MOST_NAMES else (),
        current.partitions,
        'follow' if current.follows
        else 'failover' if current.fails_over else 'pinned',
        current.failover_after,
        'shards' if current.by_shards else 'all', PROTOCOL,
        _listed(current.kind_rule.capabilities),
        _listed(current.kind_rule.traits), current.pools_limit,
        current.failover_configured)


def settings_of(host: str, said: Profile | None, down_time: float
                ) -> settings.Settings:
    """Return the settings of a service, as far as its profile shows them.

    :param host: the name of the service
    :param said: its profile; None if it runs Nova's own driver
    :param down_time: seconds without a heartbeat after which a service is
        absent
    """
    if said is None:
        return settings.Settings(
            host, down_time, cooperative=False, fails_over=False)
    return settings.Settings(
        host, down_time, said.scope,
        frozenset(said.names) if said.names else None, said.partitions,
        fails_over=said.mobility in ('failover', 'follow'),
        follows=said.mobility == 'follow',
        failover_after=said.failover_after,
        failover_configured=said.failover_configured,
        by_shards=said.listing == 'shards', kind_rule=said.kind_rule,
        pools_limit=said.pools_limit)


def _listed(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(sorted(names))


def fingerprint(*hosts: str) -> str:
    """Return a fingerprint of hosts, in any order.

    :param hosts: canonical host names
    """
    return hashlib.sha256(','.join(sorted(hosts)).encode()).hexdigest()[:12]
