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

handover_timeout_opt = cfg.IntOpt(
    'handover_timeout',
    default=0,
    min=0,
    mutable=True,
    help="""
Seconds to wait for a free node of a live service with Nova's own driver.

The default of 0 means two intervals between passes of the resource tracker.
Services with this driver say in each pass by which ring they go: their nodes
are taken as soon as they go by the same ring, and never before. A service with
Nova's own driver does not say it, so the others take its nodes after this
time. With thousands of nodes, a pass takes longer than an interval: set no
less than two passes of the slowest service with Nova's own driver.

Related options:

* ``[DEFAULT] update_resources_interval``: the time between two passes
""")

vanished_nodes_limit_opt = cfg.IntOpt(
    'vanished_nodes_limit',
    default=20,
    min=0,
    max=100,
    mutable=True,
    help="""
Percent of a service's nodes that may disappear from Ironic at once.

A service deletes the record and the resource provider of a node that Ironic no
longer has, unless the node has an instance. If more than this share of its
nodes, and more than five, are gone from one pass to the next, another reason
is more likely, such as a policy that hides them from Nova's account. Nodes
that went within the last ten passes count as well. Then the service deletes
none, logs one ERROR, and looks for the nodes again in each pass. With 0, not
even five may go.

If you have deleted more nodes than that on purpose, set this to 100, send
SIGHUP, wait for a pass, set it back, and send SIGHUP again.
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
no deployment has failed on the node for the longest time. If a pool has no
other free node, a build uses the node nevertheless. With 0, builds try nodes
that have failed like all others.

This is for the pool driver (``ironic_ring.IronicPoolDriver``). A service
reports to its peers the last twenty such nodes, and the successes after a
failure. It reads these twenty again when it is started.
""")

full_update_interval_opt = cfg.IntOpt(
    'full_update_interval',
    default=600,
    min=0,
    mutable=True,
    help="""
Seconds after which Nova's resource tracker updates an unchanged node again.

Nova updates each node in each pass, which takes some twenty requests to the
database and Placement. The ring driver updates a node when its data in Ironic
have changed, and when it changes hands. Each pass also updates a part of the
other nodes, so that each has its turn once in this time: the update repairs
what somebody has deleted or changed in Placement. A service spends at most a
quarter of its time on these, so with thousands of nodes it may take longer.
With 0, each pass updates each node, as with Nova's own driver.

A driver of your own that derives what Nova sees from anything but the usual
fields of a node in Ironic needs 0, or the time by which such changes may be
late.

The pool driver ignores this option.

Related options:

* ``[DEFAULT] update_resources_interval``: the time between two passes
""")

changes_interval_opt = cfg.IntOpt(
    'changes_interval',
    default=10,
    min=0,
    mutable=True,
    help="""
Seconds after which Ironic is asked which nodes have changed, unless a pass
has listed all nodes since.

Placement is then told soon, at any interval of the passes, of a node
that has been cleaned, that goes into maintenance or leaves it, or that
gets or loses an instance. A request reads the hundred nodes that Ironic
has changed last: that costs Ironic little more with ten thousand nodes
than with a hundred. Where passes list the nodes at least as often,
nothing more is asked for. With 0, such nodes wait for the next pass, as
nodes that are new or deleted always do.

Related options:

* ``[DEFAULT] update_resources_interval``: the time between two passes
""")

request_timeout_opt = cfg.IntOpt(
    'request_timeout',
    default=30,
    min=1,
    help="""
Seconds for which a request to Ironic or Placement waits for an answer.

This is for a service whose section has no ``timeout``: Nova then waits for
ever, also for a service that is frozen and accepts connections. Where
``[ironic] timeout`` or ``[placement] timeout`` is set, that value applies.

What has to wait for it, and not longer, are passes of the resource tracker and
takeovers. When a request of one has had no answer in time, its others to the
same service fail at once for as long again. A listing of nodes counts page by
page, so set this to more than a page takes.

Builds, deletes and other requests of users may take four times as long, and
``connect_retries``, if it is set, multiplies that.
Ironic answers some of these, such as for a port of an instance, only when its
conductor has finished, or after its own ``rpc_response_timeout`` of a minute.
Deployments take any time, because Nova asks again and again how far they are.

Requests to nova-conductor wait for ``[DEFAULT] rpc_response_timeout``. The
service reads this option when it starts.

Related options:

* ``[ironic] timeout``
* ``[placement] timeout``
""")

instance_mobility_opt = cfg.StrOpt(
    'instance_mobility',
    default='failover',
    mutable=True,
    choices=[
        ('pinned',
         'An instance always stays with the service that has built it.'),
        ('failover',
         'The services to which the ring maps the nodes take over the '
         'instances of a dead service.'),
        ('follow',
         'As failover; in addition, an idle instance of a live service '
         'follows the ring, with consent. So a disabled service loses its '
         'instances too, and a new one gets its share of them.'),
    ],
    help="""
Whether an instance may go from one service to another.

This does not affect the machine of the instance. All services that share nodes
should have the same value.

Related options:

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

With the default of 0, a service is dead only when an operator forces it down
or deletes it. The service that takes over counts the seconds itself, from the
moment at which it first saw the last heartbeat of the other, and begins anew
after it was restarted or could not reach Nova. A service is not dead before it
is absent. Nor is it dead while it may be finishing its builds during a clean
shutdown: a value below ``[DEFAULT] graceful_shutdown_timeout`` is raised to
that, with a WARNING. If that is 0, a shutdown may take any time: a service
with both does not start. Free nodes of the service do not wait for this.

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
Which nodes each service lists in Ironic.

With thousands of nodes and several services, most of the nodes that a service
lists belong to others. With ``shards``, all services together list each node
about once. Before you set it, put the nodes into shards, about twenty for each
service, with the same number of nodes in each. All services list the nodes
that have no shard.

Services that divide the same nodes need the same value: they divide them as
with ``all`` until each of them has ``shards``. This needs version 1.82 of the
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
different pools. Name those that flavors request with ``capabilities:``. The
scheduler does not see any other capability, so no server can be built with a
flavor that requests one. Unset, all capabilities make pools; an empty value
means that none does. The owner of a node may write capabilities into Ironic,
and each new value makes one more pool.

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
different pools. Name those that flavors and images require with ``trait:``.
Placement does not see any other trait of a node, so no server can be built
with a flavor that requires one. Unset, all traits make pools; an empty value
means that none does. The owner of a node may write traits into Ironic, and
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
The largest number of pools without servers that a service makes. 0 means no
limit.

With ``ironic_ring.IronicPoolDriver``, each pool costs the resource tracker in
each pass as much as a node does with Nova's own driver, a tenth of a second or
more: passes with a hundred pools still end within the default of ``[DEFAULT]
update_resources_interval``. A service makes all pools with servers, however
many these are, and they do not count here. Of the others, it makes first those
that have a record already, then those with the most nodes. Nothing is built on
the nodes of any other kind; a WARNING, and ``nova-ironic-ring check``, name
these.

Related options:

* ``[ironic_ring] pool_capabilities``
* ``[ironic_ring] pool_traits``
""")

metrics_listen_opt = cfg.StrOpt(
    'metrics_listen',
    default='',
    help="""
IP address and port on which Prometheus may scrape the metrics of this service.

By default there are no metrics. Give address and port, as in
``127.0.0.1:19108`` or ``[::1]:19108``, which serve a Prometheus, or one of its
agents, on the same machine. Everybody who can connect can read the metrics,
which name no node, instance or service, unless ``metrics_client_ca_file`` is
set. The service reads the address when it starts.

Related options:

* ``[ironic_ring] metrics_cert_file``
""")

metrics_cert_file_opt = cfg.StrOpt(
    'metrics_cert_file',
    default='',
    help="""
File with the certificate with which the metrics are served over TLS.

By default they are served without TLS. The file is in the format PEM, and has
the certificate of this service first, then those of intermediate authorities
if there are any. Prometheus then needs ``scheme: https``. nova-compute has to
be able to read the file. If it cannot be used, the service logs one ERROR and
runs without metrics. The service reads this option when it starts, and the
file again whenever the file has changed.

Related options:

* ``[ironic_ring] metrics_listen``
* ``[ironic_ring] metrics_key_file``
* ``[ironic_ring] metrics_client_ca_file``
""")

metrics_key_file_opt = cfg.StrOpt(
    'metrics_key_file',
    default='',
    help="""
File with the private key of the certificate of the metrics.

The file is in the format PEM, and not encrypted. Only nova-compute should be
able to read it. By default the key is in the file that ``metrics_cert_file``
names. The service reads this option when it starts, and the file again
whenever the file has changed.

Related options:

* ``[ironic_ring] metrics_cert_file``
""")

metrics_client_ca_file_opt = cfg.StrOpt(
    'metrics_client_ca_file',
    default='',
    help="""
File with the certificates of the authorities that sign those of clients.

If it is set, only a client with a certificate of one of them can read the
metrics, in Prometheus ``cert_file`` and ``key_file`` of ``tls_config``. By
default clients need none. The file is in the format PEM. The service reads
this option when it starts, and the file again whenever the file has changed.

Related options:

* ``[ironic_ring] metrics_cert_file``
""")

ring_opts = [partitions_opt, handover_timeout_opt,
             vanished_nodes_limit_opt, failed_node_wait_opt,
             full_update_interval_opt, changes_interval_opt,
             request_timeout_opt,
             instance_mobility_opt, failover_after_opt, listing_opt,
             pool_capabilities_opt, pool_traits_opt, pools_limit_opt,
             metrics_listen_opt, metrics_cert_file_opt, metrics_key_file_opt,
             metrics_client_ca_file_opt]


# Nova's option; this driver's own if a release of Nova no longer has it.
peer_list_opt = cfg.ListOpt(
    'peer_list',
    default=[],
    mutable=True,
    help="""
Host names of all nova-compute services with the same conductor group.

Only these services divide the nodes of the group; include this service. Case
does not matter.

You need a list only in a group that has services with Nova's own driver.
Without one, all services that report the same conductor group and shard in the
records of their nodes divide the nodes of the group.

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
    """Register ``[ironic] peer_list``, for a Nova that no longer has it.

    :param conf: Nova's configuration
    """
    conf.register_opt(peer_list_opt, group='ironic')


def list_opts() -> list[tuple[cfg.OptGroup, Sequence[cfg.Opt]]]:
    """List the options of ``[ironic_ring]``, for oslo-config-generator."""
    return [(ring_group, ring_opts)]
