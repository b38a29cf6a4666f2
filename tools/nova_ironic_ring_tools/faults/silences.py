# SPDX-License-Identifier: Apache-2.0

"""The effects of a death while something that services ask is silent."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import math
import threading
import time

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab.running import process
from nova_ironic_ring.lab.running import services
from nova_ironic_ring_tools.faults import deaths
from nova_ironic_ring_tools.faults import operators
from nova_ironic_ring_tools.faults import setups

#: What is taken from the service that dies.
TAKEN = ('servers', 'free nodes')
#: The titles of the columns.
COLUMNS = (*(f'{what} taken after' for what in TAKEN), 'silent for',
           'reboots refused/findings')
#: How long something is silent, if not all is taken before, in seconds.
LONGEST = 180
# Seconds: far more than it takes to take over all when nothing is silent.
_PATIENCE = 120
_POLL = 0.5


@dataclasses.dataclass(frozen=True)
class Silence:
    """Something that accepts connections, and does not answer.

    :ivar name: its name in the table
    :ivar process: the name of its process in the lab
    :ivar delays: which of :data:`TAKEN` wait for its answers
    :ivar limit: how long one of these may wait for a request to it, in seconds
    """

    name: str
    process: str
    delays: Sequence[str] = ()
    limit: float = 0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What has become of a service's nodes.

    :ivar silence: what was silent
    :ivar after: seconds from the death until others had all of what is in
        :data:`TAKEN`; without what they never had
    :ivar over: seconds from the death to the end of the silence
    :ivar refused: how many later reboots were refused, or never done
    :ivar findings: what ``nova-ironic-ring check`` finds in the end
    """

    silence: Silence
    after: Mapping[str, float]
    over: float
    refused: int
    findings: Sequence[str]

    @property
    def passed(self) -> bool:
        """Whether all was taken in time, and works."""
        return not self.refused and not self.findings and all(
            self.after.get(what, math.inf) < deaths.WANTED + (
                self.over + self.silence.limit
                if what in self.silence.delays else 0)
            for what in TAKEN)

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        return [*map(self._cell, TAKEN), f'{self.over:.0f} s',
                f'{self.refused}/{len(self.findings)}']

    def _cell(self, what: str) -> str:
        after = self.after.get(what)
        if after is None:
            return 'never'
        return f'{after:.0f} s' if after < self.over else (
            f'{after - self.over:.0f} s after the silence')


def measure(lab: cloud.Lab, silence: Silence, longest: float = LONGEST
            ) -> Outcome:
    """Kill a service during a silence, and measure when its nodes are taken.

    :param lab: the lab
    :param silence: what is silent
    :param longest: for how long, if not all is taken before, in seconds
    """
    link = lab.connect()
    nodes = sum(1 for _ in link.baremetal.nodes())
    host = deaths.HOST
    up = [name for name in lab.state.computes
          if name != host and lab.compute(name).state == 'running']
    lab.wait_settled(nodes)
    after: dict[str, float] = {}
    with deaths.dead_after_silence(lab), deaths.booted(lab) as booted:
        lab.wait_settled(nodes)
        # While Ironic is silent, what has been booted since a service has
        # listed the nodes is not known to that service.
        time.sleep(3 * services.PASS_INTERVAL)
        with _silent(lab, silence, longest) as thawed:
            # So that each service has asked it, and waits.
            time.sleep(services.PASS_INTERVAL)
            lab.compute(host).kill()
            start = time.monotonic()

            def is_over() -> bool:
                with lab.cell() as opened:
                    seen = setups.view.read(opened)
                now = time.monotonic() - start
                if not seen.instances.get(host):
                    after.setdefault(TAKEN[0], now)
                if not setups.unusable(seen, up):
                    after.setdefault(TAKEN[1], now)
                return len(after) == len(TAKEN)
            operators.wait(is_over, longest + _PATIENCE)
        over = thawed[0] - start
        refused = sum(not deaths.reboot(link, each) for each in booted)
        lab.start_compute(host)
    lab.wait_settled(nodes)
    findings: list[str] = []

    def is_well() -> bool:
        findings[:] = operators.findings(lab)
        return not findings
    operators.wait(is_well, _PATIENCE)
    for finding in findings:
        print(finding)
    return Outcome(silence, after, over, refused, findings)


@contextlib.contextmanager
def _silent(lab: cloud.Lab, silence: Silence, longest: float
            ) -> Iterator[list[float]]:
    """Freeze something until the end of the block, or for so many seconds.

    :returns: in the end, when it went on, first
    """
    thawed: list[float] = []

    def thaw() -> None:
        thawed.append(time.monotonic())
        resume(lab, silence)
    # In a thread: with MariaDB frozen, this process hangs as well.
    timer = threading.Timer(longest, thaw)
    pause(lab, silence)
    timer.start()
    try:
        yield thawed
    finally:
        timer.cancel()
        thaw()


def pause(lab: cloud.Lab, silence: Silence) -> None:
    """Freeze something, with all its processes.

    :param lab: the lab
    :param silence: what
    """
    for each in _processes(lab, silence):
        each.pause()


def resume(lab: cloud.Lab, silence: Silence) -> None:
    """Let something go on that was frozen.

    :param lab: the lab
    :param silence: what
    """
    for each in _processes(lab, silence):
        each.resume()


def _processes(lab: cloud.Lab, silence: Silence) -> list[process.Process]:
    # A server that was restarted has another process.
    return [lab.state.process(silence.process + suffix)
            for suffix in ('', '-again')]


# Seconds: the default of [ironic_ring] request_timeout, and what the lab has
# for [placement] timeout.
_LIMIT = 30
# The default of [DEFAULT] rpc_response_timeout, in seconds: the answer to a
# request that was under way may be lost.
_RPC_LIMIT = 60

# Placement is asked for the allocations of a free node before it is taken.
SILENCES = [
    Silence('Ironic silent', 'ironic'),
    Silence('Placement silent', 'placement', TAKEN[1:], _LIMIT),
    Silence('Keystone silent', 'keystone'),
    Silence('Neutron silent', 'neutron'),
    Silence('Glance silent', 'glance'),
    Silence('conductor silent', 'nova-conductor', TAKEN),
    Silence('RabbitMQ silent', 'rabbitmq', TAKEN, _RPC_LIMIT),
    Silence('MariaDB silent', 'mariadb', TAKEN),
]
#: The same with pools: a server that comes into another pool has another
#: allocation, and Placement asks Keystone whose request that is. A free node
#: is counted with a listing.
_WITH_POOLS = {'placement': TAKEN, 'keystone': TAKEN, 'ironic': TAKEN[1:]}
WITH_POOLS = [
    dataclasses.replace(each, delays=_WITH_POOLS[each.process], limit=_LIMIT)
    if each.process in _WITH_POOLS else each for each in SILENCES]
