# SPDX-License-Identifier: Apache-2.0

"""The options of ``[ironic_ring]``.

What the driver shares with Nova's own (conductor group, peer list, shard, the
credentials) stays in ``[ironic]``.
"""

from collections.abc import Sequence

from oslo_config import cfg

ring_group = cfg.OptGroup(
    'ironic_ring',
    title='Ironic ring options',
    help="""
How several nova-compute services that run ``ironic_ring.IronicRingDriver``
divide the nodes of one Ironic among themselves.
""")

partitions_opt = cfg.IntOpt(
    'partitions',
    default=32,
    min=1,
    max=65536,
    mutable=True,
    help="""
Points that each service gets on the ring.

More points divide the nodes more evenly between the services and cost a
little time in each pass of the resource tracker. The default is what Nova's
own ironic driver uses, so that services of both drivers see the same ring.

All services that share nodes must have the same value: with different ones
they disagree about the owner of a node.""")

handover_opt = cfg.StrOpt(
    'handover',
    default='cooperative',
    mutable=True,
    choices=[
        ('cooperative',
         'A service takes a free node from one that is alive only when that '
         'one lets it. Each node changes hands once, and builds that are '
         'under way are not disturbed.'),
        ('immediate',
         "What Nova's own ironic driver does: each service takes the free "
         'nodes that its ring gives it in its next pass. While the views of '
         'two services differ, nodes go to and fro between them.'),
    ],
    help="""
How a node without an instance goes from one live service to another.

Related options:

* ``[ironic_ring] handover_timeout``
""")

handover_timeout_opt = cfg.IntOpt(
    'handover_timeout',
    default=0,
    min=0,
    mutable=True,
    help="""
Seconds to wait for the consent of a live service before its node is taken.

Services with this driver give their consent in their next pass. One with
Nova's own driver gives up a node without saying so, and one that hangs says
nothing at all: their nodes are taken after this time. The default of 0 means
two passes of the resource tracker of the slower service: as long as its passes
have lately taken, or as the present one takes, and no less than two intervals.
With thousands of nodes a pass takes longer than an interval: where this value
is shorter than two passes of a service, a WARNING in the log says so.

Related options:

* ``[DEFAULT] update_resources_interval``: the time between two passes
* ``[ironic_ring] handover``: with ``immediate``, this option is ignored
""")

vanished_nodes_limit_opt = cfg.IntOpt(
    'vanished_nodes_limit',
    default=20,
    min=0,
    max=100,
    mutable=True,
    help="""
Percent of a service's nodes that may disappear from Ironic at once.

The record and the resource provider of a node that Ironic does not have any
more are deleted, unless it has an instance. Where more than this share of a
service's nodes, and more than five of them, are gone from one pass to the
next, something else is the more likely reason, such as a policy that hides
them from Nova's account. Those that went within the last ten passes count as
well. Then none is deleted, one ERROR says so, and the nodes are looked for
again in each pass. With 0, not even five may go.

When that many nodes were deleted on purpose, set this to 100, send SIGHUP,
wait for a pass, set it back, and send SIGHUP again.
""")

failed_node_wait_opt = cfg.IntOpt(
    'failed_node_wait',
    default=900,
    min=0,
    mutable=True,
    help="""
Seconds for which builds in a pool try a node last of its kind, after a
deployment on the node has failed.

The time doubles with each further failure in a row, up to sixteen times this
value: four hours by default. It ends with a deployment that succeeds, or when
the node has not failed for as long as the longest time. Where a pool has no
other free node, a build uses the node all the same. With 0, builds try nodes
that have failed like all others.

This is for the pool driver (``ironic_ring.IronicPoolDriver``). A service tells
its peers of the last twenty such nodes, and of successes that end such a time,
and goes on from these twenty when it is started again.
""")

full_update_interval_opt = cfg.IntOpt(
    'full_update_interval',
    default=600,
    min=0,
    mutable=True,
    help="""
Seconds after which Nova's resource tracker updates a node again of which
nothing has changed.

Nova updates each node in each pass, which takes some twenty requests to the
database and Placement. The ring driver updates a node when Ironic says
something else of the node than before, and when the node changes hands. Of the
other nodes a part is updated in each pass, so that each node has its turn once
in this time: the update also repairs what somebody has deleted or changed in
Placement. With 0, each node is updated in each pass, as by Nova's own driver.

A driver of your own that tells Nova what the usual fields of a node in Ironic
do not say needs 0, or a time after which such changes may be seen.

The pool driver has no use for this option.

Related options:

* ``[DEFAULT] update_resources_interval``: the time between two passes
""")

instance_mobility_opt = cfg.StrOpt(
    'instance_mobility',
    default='failover',
    mutable=True,
    choices=[
        ('pinned',
         'An instance belongs to the service that has built it, for ever.'),
        ('failover',
         'The instances of a service that is dead are taken over by the '
         'services that the ring maps their nodes to.'),
        ('follow',
         'As failover; besides, an instance goes with the ring when its '
         'service is alive, by consent, while nothing is being done with it. '
         'So a service that is disabled is emptied of its instances as well, '
         'and one that is new gets its share of them.'),
    ],
    help="""
Whether an instance may go from one service to another.

The machine of the instance is not touched by that. All services that share
nodes should have the same value.

Related options:

* ``[ironic_ring] handover``: with ``immediate``, this option is ignored
* ``[ironic_ring] failover_after``: when a service is dead
""")

failover_after_opt = cfg.IntOpt(
    'failover_after',
    default=0,
    min=0,
    mutable=True,
    help="""
Seconds of silence after which a service is dead, and its instances are
taken over.

The service that takes over counts them itself, from when it first saw the
last heartbeat of the other, and anew after it was restarted or could not
reach Nova. A service is not dead before it is absent, and not before one that
ends in order may have finished its builds: a value below ``[DEFAULT]
graceful_shutdown_timeout`` is raised to that, and a WARNING says so. With the
default of 0, only an operator makes a service dead, who forces it down or
deletes it. Its free nodes do not wait for this.

Related options:

* ``[ironic_ring] instance_mobility``: with ``pinned``, this option is ignored
* ``[DEFAULT] service_down_time``: when a service is absent
* ``[DEFAULT] graceful_shutdown_timeout``: how long a service may take to end
""")

listing_opt = cfg.StrOpt(
    'listing',
    default='all',
    mutable=True,
    choices=[
        ('all',
         'Each service lists all nodes of its conductor group or shard, and '
         'the ring divides them node by node.'),
        ('shards',
         'The ring divides the shards that nodes are in. Each service lists '
         'the nodes of its own shards, of those in which it still has nodes '
         'or instances, and the nodes without a shard.'),
    ],
    help="""
Which nodes each service asks Ironic for.

With thousands of nodes and several services, most of the nodes that a service
lists are for others. With ``shards``, all services together list each node
about once. Before you set it, put the nodes into shards, about twenty for each
service, with the same number of nodes in each. All services list the nodes
that have no shard.

Services that divide the same nodes have to agree: they divide them as with
``all`` until each of them has ``shards``. This needs version 1.82 of the
Ironic API, and an account that may read Ironic's shards.

Related options:

* ``[ironic] shard``: limits a service to one shard, and cannot be set as well
""")

pool_capabilities_opt = cfg.ListOpt(
    'pool_capabilities',
    mutable=True,
    help="""
Capabilities of nodes that make a pool of their own.

With ``ironic_ring.IronicPoolDriver``, nodes that differ in one of these are in
different pools. Name those that flavors ask for with ``capabilities:``. The
scheduler does not see any other capability, so no server can be built with a
flavor that asks for one. Unset, all capabilities make pools; an empty value
means that none does. Whoever owns a node in Ironic may write capabilities into
it, and each new value makes one more pool.

All services that share nodes must have the same value. Resource class and
architecture (``cpu_arch``) always make a pool.

Related options:

* ``[ironic_ring] pool_traits``
* ``[ironic_ring] pools_limit``
""")

pool_traits_opt = cfg.ListOpt(
    'pool_traits',
    mutable=True,
    help="""
Traits of nodes that make a pool of their own.

With ``ironic_ring.IronicPoolDriver``, nodes that differ in one of these are in
different pools. Name those that flavors and images ask for with ``trait:``.
Placement is told of no other trait of a node, so no server can be built with
a flavor that requires one. Unset, all traits make pools; an empty value means
that none does. Whoever owns a node in Ironic may write traits into it, and
each new one makes one more pool.

All services that share nodes must have the same value.

Related options:

* ``[ironic_ring] pool_capabilities``
* ``[ironic_ring] pools_limit``
""")

pools_limit_opt = cfg.IntOpt(
    'pools_limit',
    default=100,
    min=0,
    mutable=True,
    help="""
How many pools without servers a service makes at most.

With ``ironic_ring.IronicPoolDriver``, each pool costs the resource tracker in
each pass as much as a node does with Nova's own driver, which is a tenth of a
second or more: the passes with a hundred of them still end within the default
of ``[DEFAULT] update_resources_interval``. A service makes all pools with
servers, however many these are, and they do not count here. Of the others, it
makes first those that have a record already, then those with the most nodes.
Nothing is built on the nodes of any other kind: a WARNING, and
``nova-ironic-ring check``, say which these are. 0 means no limit.

Related options:

* ``[ironic_ring] pool_capabilities``
* ``[ironic_ring] pool_traits``
""")

metrics_listen_opt = cfg.StrOpt(
    'metrics_listen',
    default='',
    help="""
IP address and port on which Prometheus may ask this service for metrics.

Empty, the service has no metrics. Give address and port, as in
``127.0.0.1:19108`` or ``[::1]:19108``, which serve a Prometheus, or an agent
of one, on the same machine. Whoever can connect can read the metrics, which
name no node, instance or service; there is neither a password nor TLS. The
address is read when the service starts.
""")

ring_opts = [partitions_opt, handover_opt, handover_timeout_opt,
             vanished_nodes_limit_opt, failed_node_wait_opt,
             full_update_interval_opt, instance_mobility_opt,
             failover_after_opt, listing_opt,
             pool_capabilities_opt, pool_traits_opt, pools_limit_opt,
             metrics_listen_opt]


# Nova's, and ours where a release of Nova has it no more.
peer_list_opt = cfg.ListOpt(
    'peer_list',
    default=[],
    mutable=True,
    help="""
Host names of all nova-compute services with the same conductor group.

They alone divide the nodes of the group among themselves; name this service
as well. Upper and lower case are the same.

Without a list, the services divide the nodes that say of themselves that they
have the same conductor group and shard: there is no list to keep. A list is
needed in a group that has services with Nova's own driver, which say nothing.

Related options:

* ``[ironic] conductor_group``: without it, this option is ignored
* ``[ironic] shard``: with it, this option is ignored
""")


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options.

    :param conf: Nova's configuration; doing so twice is harmless
    """
    conf.register_group(ring_group)
    conf.register_opts(ring_opts, group=ring_group)


def register_peer_list(conf: cfg.ConfigOpts) -> None:
    """Register ``[ironic] peer_list``, for a Nova that has it no more.

    :param conf: Nova's configuration
    """
    conf.register_opt(peer_list_opt, group='ironic')


def list_opts() -> list[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List the options of ``[ironic_ring]``, for oslo-config-generator."""
    return [(ring_group, ring_opts)]
