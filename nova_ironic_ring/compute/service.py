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

"""One service of the ring: its settings, its memory and its passes."""

from collections.abc import Container, Mapping, Sequence
import dataclasses
import datetime
import time

import nova.conf
from nova import exception
from openstack.baremetal.v1 import node as sdk_node
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.adapters import nodes
from nova_ironic_ring.adapters import placement
from nova_ironic_ring.adapters import records
from nova_ironic_ring.adapters import settings
from nova_ironic_ring.adapters import stats
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.compute import log
from nova_ironic_ring.core import leftovers
from nova_ironic_ring.core import observation
from nova_ironic_ring.core import passes
from nova_ironic_ring.core import ports
from nova_ironic_ring.core import profile
from nova_ironic_ring.core import settings as core_settings
from nova_ironic_ring.core import takeover
from nova_ironic_ring.process import pulse
from nova_ironic_ring.process import sighup

LOG = logging.getLogger(__name__)

CONF = nova.conf.CONF
conf.register_opts(CONF)
if not upstream.make_peer_list_mutable():
    conf.register_peer_list(CONF)


class Process:
    """This process behind the port.

    See :class:`nova_ironic_ring.core.ports.Process`.
    """

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Choose the process.

        :param driver: the driver that its manager has
        """
        self._driver = driver
        self.pulse = pulse.Pulse(self.now)

    def now(self) -> float:
        return time.monotonic()

    def longest_gap(self) -> float:
        upstream.watch_heartbeats(self._driver, self.pulse.beat)
        return self.pulse.longest_gap()

    def is_ending(self) -> bool:
        return self.pulse.is_ended

    def tracked(self) -> Container[str]:
        return upstream.tracked_nodes(self._driver)


@dataclasses.dataclass(frozen=True)
class Ended:
    """The end of a pass.

    :ivar at: when it was, with time zone
    :ivar seconds: how long the pass took
    """

    at: datetime.datetime
    seconds: float


class RingService:
    """Decides for one nova-compute which nodes are its own."""

    def __init__(self, driver: upstream.NovaIronicDriver) -> None:
        """Begin without a pass.

        :param driver: the driver of the nova-compute
        """
        self._driver = driver
        self.process = Process(driver)
        self.ironic = nodes.Ironic(driver)
        self.world = ports.Ports(
            records.Nova(), self.ironic, placement.Placement(driver),
            self.process)
        self.reloader = sighup.Reloader(CONF)
        self.memory = observation.Memory()
        #: What has come of the last pass.
        self.result = passes.Result()
        #: The nodes of this service, by UUID, as Nova's driver wants them.
        self.nodes: Mapping[str, sdk_node.Node] = {}
        #: How many passes have ended well, and the last of them.
        self.passes = 0
        self.ended: Ended | None = None
        self._settings: core_settings.Settings | None = None
        #: What the others read of this service in its nodes' rows.
        self._published: dict[str, str] = {}
        self._complaint = ''

    @property
    def settings(self) -> core_settings.Settings:
        """The last good configuration."""
        return self._settings or self.read_settings()

    @property
    def has_settings(self) -> bool:
        """Whether there has been a good configuration."""
        return self._settings is not None

    def read_settings(self) -> core_settings.Settings:
        """Read the configuration, or keep the last good one.

        :raises nova.exception.InvalidConfiguration: if there is no good one
        """
        try:
            self._settings = settings.read(CONF)
            # For the row of each node: made once, not once a node.
            self._published = stats.publish(profile.of(self._settings))
            self._complaint = ''
        except ValueError as error:
            if self._settings is None:
                LOG.error('%s', error)
                raise exception.InvalidConfiguration(str(error)) from error
            if str(error) != self._complaint:
                self._complaint = str(error)
                LOG.error('%s Until then, what was configured before stays in '
                          'force.', error)
        return self._settings

    def run_pass(self) -> passes.Result:
        """Run a pass, and log what happens in it.

        :raises nova.exception.VirtDriverNotReady: if Ironic does not answer
        :raises nova.exception.InvalidConfiguration: if there is no good
            configuration
        """
        start = self.process.now()
        if self.reloader.reload():
            upstream.reset_manager(self._driver)
        current = self.read_settings()
        try:
            self.result = passes.run(self.world, self.memory, current)
        except passes.UnansweredError as error:
            self.memory = error.memory
            self.process.pulse.forget_told()
            log.write(error.happened, current)
            assert error.__cause__ is not None
            raise error.__cause__
        self.memory = self.result.memory
        self.process.pulse.forget_told()
        self.nodes = {node: self.ironic.found[node]
                      for node in self.result.listed}
        self.passes += 1
        self.ended = Ended(timeutils.utcnow(with_timezone=True),
                           self.process.now() - start)
        log.write(self.result.happened, current, self.ended.seconds)
        return self.result

    def claim(self, node: str) -> Sequence[takeover.Takeover]:
        """Look at a node once more before the resource tracker takes it.

        :param node: the node's UUID
        :returns: instances that have become this service's by it
        :raises NodeLostError: if another service has taken the node meanwhile
        """
        step = self.result.plan.steps.get(node)
        if step is None or node in self.process.tracked():
            return ()
        try:
            settled = passes.claim(self.world, node, step, self.settings.me)
        except passes.NodeInUseError:
            self.memory = dataclasses.replace(
                self.memory, in_use=self.memory.in_use | {node})
            raise
        self.memory = dataclasses.replace(
            self.memory,
            left_builds=(*self.memory.left_builds, *settled.left))
        log.write(settled.happened, self.settings)
        return settled.taken

    def stats(self, node: str, found: Mapping[str, str]) -> dict[str, str]:
        """Return what the others are to read in the row of a node.

        :param node: the node's UUID
        :param found: the statistics that Nova's driver has made of the node
        """
        said = stats.cleaned(found)
        step = self.result.plan.steps.get(node)
        if step is not None:
            said |= self._published
            if step.offer is not None:
                said |= stats.offer(self.settings.host, step.offer)
        return said

    def is_deleted(self, node: str) -> bool:
        """Say whether the record of a node that is not listed can go.

        :param node: the node's UUID
        """
        try:
            is_gone, self.memory, happened = leftovers.look_at_missing(
                self.world, self.memory, node)
        except Exception as error:
            # Nova would give up the rest of its pass.
            LOG.error('Whether node %(node)s is gone cannot be told: '
                      '%(error)s', {'node': node, 'error': error})
            return False
        log.write(happened, self.settings)
        return is_gone
