# SPDX-License-Identifier: Apache-2.0

"""A service of three, which runs passes on a cloud in memory."""

from collections.abc import Callable
import dataclasses
from typing import Any

from oslotest import base

from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.passing import passes
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds
from nova_ironic_ring.core.world import forecast

PLACES = node_places.Nodes()
NODES = ['00000000-0000-0000-0000-%012d' % number for number in range(30)]


def desired(*members: str, by: str = 'me', partitions: int = 32) -> set[str]:
    """Return the nodes that are for a service.

    :param members: the members of the ring
    :param by: the canonical name of the service
    :param partitions: points on the ring for each member
    """
    current = ring.Ring(members, partitions)
    return {node for node in NODES if current.owner(node) == by}


def say(cloud: clouds.Cloud, host: str, **said: Any) -> None:
    """Write the member record of a service without a limit to its nodes.

    :param host: its name
    :param said: what it says otherwise than before
    """
    name = model.canonical(host)
    cloud.members[name] = dataclasses.replace(
        cloud.members.get(name, model.Member(scope=model.Scope())), **said)


class _Watched:
    """A port that tells what it is asked."""

    def __init__(self, port: Any, tell: Callable[[str], None]) -> None:
        self._port = port
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._tell(name)
            return method(*args, **kwargs)
        return call


class WithTracker:
    """Has a service whose memory is where its tracker has it."""

    tracker: clouds.Tracker

    @property
    def memory(self) -> observation.Memory:
        """What the service remembers."""
        return self.tracker.memory

    @memory.setter
    def memory(self, memory: observation.Memory) -> None:
        self.tracker.memory = memory


class PassTestCase(WithTracker, base.BaseTestCase):
    """The service ``me``, whose peers ``a`` and ``b`` only have heartbeats."""

    SETTINGS = settings.Settings('me')

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        for host in 'me', 'a', 'b':
            self.cloud.beat(host)
        #: Those whose heartbeats go on.
        self.alive = {'me', 'a', 'b'}
        current = ring.Ring({'me', 'a', 'b'}, 32)
        for node in NODES:
            self.cloud.nodes[node] = clouds.Node()
            self.record(node, str(current.owner(node)))
        #: What the ports were asked in the last pass, in turn.
        self.asked: list[str] = []
        #: What is to happen once before a call, by the name of the call.
        self.before: dict[str, Callable[[], object]] = {}
        self.restart()
        self.memory = forecast.start(self.cloud, self.current)
        self.tracker.process.tracked_nodes = self.owned()
        self.run_pass()

    def restart(self) -> None:
        """Make the service a process that has only started."""
        self.current = self.SETTINGS
        self.tracker = clouds.connect(self.cloud, self.current)
        self.tracker.world = ports.Ports(*(
            _Watched(port, self._tell) for port in (
                self.tracker.world.nova, self.tracker.world.ironic,
                self.tracker.world.placement, self.tracker.process)))
        self.memory = observation.Memory()

    def _tell(self, name: str) -> None:
        self.asked.append(name)
        self.before.pop(name, lambda: None)()

    def configure(self, **values: Any) -> None:
        """Change settings of the service."""
        self.current = dataclasses.replace(self.current, **values)
        self.tracker.current = self.current

    def record(self, node: str, owner: str) -> None:
        """Write the row of a node.

        :param node: its UUID
        :param owner: its owner
        """
        self.cloud.rows[node] = clouds.Row(owner)

    def ring(self) -> str:
        """Return the fingerprint of the service's ring."""
        return self.memory.view.ring.fingerprint(self.current.scope)

    def let_go(self, owner: str, **said: Any) -> None:
        """Have a service acknowledge this one's ring after a good pass.

        :param owner: its name
        :param said: what it says instead, or as well
        """
        say(self.cloud, owner, **{
            'last_pass': model.LastPass(
                60, self.tracker.world.process.wall_time()),
            'ring': self.ring(), **said})

    def give_all_to(self, *hosts: str) -> None:
        """Write the rows of all nodes by a ring of some hosts."""
        current = ring.Ring(hosts, 32)
        for node in NODES:
            self.record(node, str(current.owner(node)))

    def place(self, node: str, instance: str, host: str | None,
              **fields: Any) -> None:
        """Put an instance on a node.

        :param node: the node's UUID
        :param instance: the instance's UUID
        :param host: its service
        """
        self.cloud.nodes[node].instance = instance
        self.cloud.instances[instance] = model.Instance(
            host, node, **fields)

    def change(self, host: str, **fields: Any) -> None:
        """Change the record of a service."""
        self.cloud.services[host] = dataclasses.replace(
            self.cloud.services[host], **fields)

    def join(self, host: str) -> None:
        """Have one more service, which has a node already.

        :param host: its name
        """
        self.alive.add(host)
        self.cloud.beat(host)
        node = f'of-{host}'
        self.cloud.nodes[node] = clouds.Node(instance=f'instance-of-{host}')
        self.cloud.instances[f'instance-of-{host}'] = model.Instance(
            host, node)
        self.record(node, host)

    def die(self, host: str) -> None:
        """Have a service be absent: watched for the down time.

        :param host: its name
        """
        self.alive.discard(host)
        self.wait(self.current.down_time)

    def force_down(self, host: str) -> None:
        """Say that a service is down, as an operator does."""
        self.alive.discard(host)
        self.change(host, forced_down=True)

    def wait(self, seconds: float) -> None:
        """Let time pass, with a heartbeat of all that live in the end."""
        self.cloud.now += seconds
        for host in sorted(self.alive & self.cloud.services.keys()):
            self.cloud.beat(host)

    def decide(self) -> node_places.PassResult:
        """Run a pass, of which Nova's tracker makes nothing yet."""
        self.asked.clear()
        try:
            self.memory = self.memory.begun(self.cloud.now, self.current)
            self.result = passes.run(
                self.tracker.world, self.memory, self.current, PLACES)
        except passes.UnansweredError as error:
            self.memory = error.memory
            self.result = node_places.PassResult(happened=error.happened)
            raise
        self.memory = self.result.memory
        return self.result

    def between(self) -> one_pass.Pass:
        """Return what is done between two passes, at a node."""
        return one_pass.Pass(self.tracker.world, self.current, self.memory)

    def run_pass(self) -> set[str]:
        """Run a pass, and have Nova's tracker take what is listed.

        :returns: the nodes that are listed
        """
        result = self.decide()
        self.tracker.track(result)
        return set(result.listed)

    def run_passes(self, seconds: float, every: float) -> set[str]:
        """Run passes for some time, and return what the last one lists."""
        listed = set()
        for _ in range(round(seconds / every)):
            self.wait(every)
            listed = self.run_pass()
        return listed

    def owned(self) -> set[str]:
        """Return the nodes that are recorded for the service."""
        return {node for node, row in self.cloud.rows.items()
                if row.owner == 'me'}

    def offers(self) -> dict[str, str]:
        """Return to whom the last pass offers nodes, by node."""
        return {node: step.offer
                for node, step in self.result.plan.steps.items() if step.offer}

    def happened(self, kind: type) -> list[Any]:
        """Return the events of a kind of the last pass."""
        return [each for each in self.result.happened
                if isinstance(each, kind)]

    def decisions(self) -> dict[str, Any]:
        """Return the decisions of the last pass, by node."""
        return {node: step.decision
                for node, step in self.result.plan.steps.items()}
