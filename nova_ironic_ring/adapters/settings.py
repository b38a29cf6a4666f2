# SPDX-License-Identifier: Apache-2.0

"""Reads the configuration of a pass as a whole, and checks it."""

from collections.abc import Iterable

from oslo_config import cfg

from nova_ironic_ring.core.values import kinds
from nova_ironic_ring.core.values import settings

_DEFAULT_PASS_INTERVAL = 60


def read(conf: cfg.ConfigOpts) -> settings.Settings:
    """Read the settings.

    :param conf: Nova's configuration, with the options of this project
    :raises ValueError: if no ring is possible with them; the message says what
        to do
    """
    ironic = conf.ironic
    ours = conf.ironic_ring
    scope = settings.Scope(ironic.conductor_group, ironic.shard)
    if ours.listing == 'shards' and scope.shard:
        raise ValueError(
            '[ironic_ring] listing = shards divides the shards of Ironic, and '
            f'[ironic] shard limits this service to {scope.shard}: unset one '
            'of the two.')
    if conf.update_resources_interval < 0:
        raise ValueError(
            '[DEFAULT] update_resources_interval is '
            f'{conf.update_resources_interval}, so Nova runs no pass of the '
            'resource tracker, and this service takes no node: set 0 for one '
            'a minute, or a number of seconds.')
    if ours.failover_after and _graceful(conf) == 0:
        raise ValueError(
            '[DEFAULT] graceful_shutdown_timeout is 0, so a service that '
            'shuts down may work without end, and [ironic_ring] '
            'failover_after is set, which has others take its instances over: '
            'set the first to a number of seconds, or the second to 0.')
    return settings.Settings(
        host=conf.host,
        down_time=conf.service_down_time,
        scope=scope,
        peers=settings.peers(conf.host, scope, ironic.peer_list),
        partitions=ours.partitions,
        pass_interval=_pass_interval(conf),
        report_interval=conf.report_interval,
        handover_timeout=ours.handover_timeout or 2 * _pass_interval(conf),
        fails_over=ours.instance_mobility in ('failover', 'follow'),
        follows=ours.instance_mobility == 'follow',
        failover_after=_failover_after(conf),
        failover_configured=ours.failover_after,
        vanished_nodes_limit=ours.vanished_nodes_limit,
        failed_node_wait=ours.failed_node_wait,
        full_update_interval=ours.full_update_interval,
        changes_interval=ours.changes_interval,
        by_shards=ours.listing == 'shards',
        kind_rule=kinds.Rule(_names(ours.pool_capabilities),
                             _names(ours.pool_traits)),
        pools_limit=ours.pools_limit)


def _names(said: Iterable[str] | None) -> frozenset[str] | None:
    """Return the names in a list; None where the option is not set."""
    return None if said is None else frozenset(said) - {''}


def _failover_after(conf: cfg.ConfigOpts) -> float:
    """Return the seconds of silence after which a service is dead.

    A service that ends in order stops its heartbeats first and then finishes
    its builds, for as long as ``graceful_shutdown_timeout`` lets it: that long
    its instances are its own.
    """
    if not conf.ironic_ring.failover_after:
        return 0
    return max(conf.ironic_ring.failover_after, _graceful(conf))


def _graceful(conf: cfg.ConfigOpts) -> float:
    """Return for how many seconds a service may shut down; 0 without end."""
    # oslo.service registers it when it starts a service.
    return getattr(conf, 'graceful_shutdown_timeout', 60)


def _pass_interval(conf: cfg.ConfigOpts) -> float:
    """Return the seconds between two passes of the resource tracker."""
    # Zero is the periodic tasks' own default.
    return conf.update_resources_interval or _DEFAULT_PASS_INTERVAL
