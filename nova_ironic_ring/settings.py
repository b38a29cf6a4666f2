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

"""The configuration of one pass, read as a whole and checked."""

import dataclasses

from oslo_config import cfg

from nova_ironic_ring import membership

_DEFAULT_PASS_INTERVAL = 60


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a pass goes by.

    :ivar host: the name of this service
    :ivar down_time: seconds without a heartbeat after which a service is down
    :ivar conductor_group: the group that this service is limited to; the empty
        string is Ironic's default group; None if there is no limit
    :ivar shard: the shard that this service is limited to, if any
    :ivar peers: canonical names of the only hosts that may be members; None
        if all may
    :ivar partitions: points on the ring for each member
    :ivar pass_interval: seconds between two passes of the resource tracker
    :ivar report_interval: seconds between two heartbeats
    :ivar cooperative: whether nodes are handed over with consent
    :ivar handover_timeout: seconds to wait for the consent of a live owner
    :ivar fails_over: whether the instances of dead services are taken over
    :ivar follows: whether instances go with the ring from live ones as well
    :ivar failover_after: seconds without a heartbeat after which a service is
        dead; 0 if only an operator's word makes it so
    :ivar vanished_nodes_limit: percent of this service's nodes that may
        disappear from Ironic at once
    """

    host: str
    down_time: float
    conductor_group: str | None
    shard: str | None
    peers: frozenset[str] | None
    partitions: int
    pass_interval: float
    report_interval: float
    cooperative: bool
    handover_timeout: float
    vanished_nodes_limit: int
    fails_over: bool
    follows: bool
    failover_after: float

    @property
    def is_filtered(self) -> bool:
        """Whether this service is limited to some of Ironic's nodes."""
        return self.conductor_group is not None or bool(self.shard)

    @property
    def view(self) -> membership.View:
        """How this service looks at the others."""
        return membership.View(self.host, self.down_time, self.peers)


def read(conf: cfg.ConfigOpts) -> Settings:
    """Read the settings.

    :param conf: Nova's configuration, with the options of this project
    :raises ValueError: if no ring can come of them; the message says what to
        do
    """
    ironic = conf.ironic
    ours = conf.ironic_ring
    return Settings(
        host=conf.host,
        down_time=conf.service_down_time,
        conductor_group=ironic.conductor_group,
        shard=ironic.shard,
        peers=membership.peers(conf.host, ironic.conductor_group,
                               ironic.shard, ironic.peer_list),
        partitions=ours.partitions,
        pass_interval=_pass_interval(conf),
        report_interval=conf.report_interval,
        cooperative=ours.handover == 'cooperative',
        handover_timeout=ours.handover_timeout or 2 * _pass_interval(conf),
        vanished_nodes_limit=ours.vanished_nodes_limit,
        fails_over=ours.instance_mobility in ('failover', 'follow'),
        follows=ours.instance_mobility == 'follow',
        failover_after=ours.failover_after)


def _pass_interval(conf: cfg.ConfigOpts) -> float:
    """Return the seconds between two passes of the resource tracker."""
    # Zero is the periodic tasks' own default; a negative one means no passes.
    return (conf.update_resources_interval
            if conf.update_resources_interval > 0
            else _DEFAULT_PASS_INTERVAL)
