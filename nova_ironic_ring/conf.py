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

ring_opts = [partitions_opt]


# Nova's, and ours where a release of Nova has it no more.
peer_list_opt = cfg.ListOpt(
    'peer_list',
    default=[],
    mutable=True,
    help="""
Host names of all nova-compute services with the same conductor group.

They alone divide the nodes of the group among themselves, this service among
them. Upper and lower case are the same.

Related options:

* ``[ironic] conductor_group``: without it, this option is ignored
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
