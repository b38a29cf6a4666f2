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

"""Many services, whatever befalls them.

The number of examples is Hypothesis's profile's: see ``tox.ini`` for the long
run, which prints how many steps the services took.
"""

import atexit
import collections
import os

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from nova_ironic_ring.tests.unit.simulation import world as simulated

hypothesis.settings.register_profile(
    'default', max_examples=30, stateful_step_count=20, deadline=None,
    derandomize=True, print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.register_profile(
    'long', hypothesis.settings.get_profile('default'), derandomize=False,
    max_examples=int(os.environ.get('SIMULATION_EXAMPLES', '1000')))
hypothesis.settings.load_profile(
    os.environ.get('HYPOTHESIS_PROFILE', 'default'))

_MOST_HOSTS = 5
_SECONDS = st.floats(0, 12, allow_nan=False)
_LONG = st.floats(1, 40, allow_nan=False)
_steps: collections.Counter[str] = collections.Counter()


class Machine(stateful.RuleBasedStateMachine):
    """Plays what can befall a ring of services without groups."""

    GROUPS: tuple[str | None, ...] = (None,)
    KINDS: tuple[type[simulated.Host], ...] = (simulated.Host,)
    IS_LEAST = True
    FOLLOWS = False
    QUIET = simulated.QUIET

    @stateful.initialize(seed=st.integers(0, 2**16), hosts=st.integers(1, 4),
                         nodes=st.integers(0, 12))
    def set_up(self, seed, hosts, nodes):
        self.world = simulated.World(seed)
        self.world.follows = self.FOLLOWS
        for number in range(nodes):
            self.world.enroll(self._group(number) or '')
        for number in range(hosts):
            self._start(number)
        self.settled = False

    def teardown(self):
        if hasattr(self, 'world'):
            _steps['examples'] += 1
            _steps['steps'] += self.world.steps
            _steps['moves'] += len(self.world.moves)

    # Helpers

    def _group(self, number: int) -> str | None:
        return self.GROUPS[number % len(self.GROUPS)]

    def _start(self, number: int) -> None:
        group = self._group(number)
        peers = tuple(f'host-{each}' for each in range(_MOST_HOSTS)
                      if self._group(each) == group)
        self.world.start(f'host-{number}', group=group, peers=(
            peers if group is not None else ()),
            kind=self.KINDS[number % len(self.KINDS)])

    def _host(self, data) -> simulated.Host:
        hypothesis.assume(self.world.hosts)
        return self.world.hosts[
            data.draw(st.sampled_from(sorted(self.world.hosts)))]

    def _node(self, data, free: bool) -> str:
        nodes = sorted(node.name for node in self.world.nodes.values()
                       if (node.instance is None) == free)
        hypothesis.assume(nodes)
        return data.draw(st.sampled_from(nodes))

    def _then(self, seconds: float) -> None:
        self.settled = False
        self.world.run(seconds)

    # What befalls the services

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def start(self, data, seconds):
        free = [number for number in range(_MOST_HOSTS)
                if f'host-{number}' not in self.world.hosts]
        hypothesis.assume(free)
        self._start(data.draw(st.sampled_from(free)))
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def crash(self, data, seconds):
        self.world.crash(self._host(data).name)
        self._then(seconds)

    @stateful.rule(data=st.data(), length=_LONG, seconds=_SECONDS)
    def freeze(self, data, length, seconds):
        self.world.freeze(self._host(data).name, length)
        self._then(seconds)

    @stateful.rule(length=_LONG, seconds=_SECONDS)
    def stall(self, length, seconds):
        self.world.stall(length)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def cut_off(self, data, seconds):
        host = self._host(data)
        host.is_cut_off = not host.is_cut_off
        host.disturbed_at = float('inf') if host.is_cut_off else (
            self.world.now)
        self.world.log(f'{host.name} is '
                       f'{"cut off" if host.is_cut_off else "back"}')
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def disable(self, data, seconds):
        hypothesis.assume(self.world.services)
        service = self.world.services[
            data.draw(st.sampled_from(sorted(self.world.services)))]
        service.disabled = not service.disabled
        if service.host in self.world.hosts:
            self.world.hosts[service.host].disturbed_at = self.world.now
        self.world.log(f'{service.host} is '
                       f'{"disabled" if service.disabled else "enabled"}')
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def force_down(self, data, seconds):
        hypothesis.assume(self.world.services)
        service = self.world.services[
            data.draw(st.sampled_from(sorted(self.world.services)))]
        service.forced_down = not service.forced_down
        if service.host in self.world.hosts:
            self.world.hosts[service.host].disturbed_at = self.world.now
        self.world.log(f'{service.host} is forced '
                       f'{"down" if service.forced_down else "up"}')
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS,
                   skew=st.floats(-30, 30, allow_nan=False))
    def set_clock(self, data, skew, seconds):
        host = self._host(data)
        host.skew = skew
        host.disturbed_at = float('inf')
        self.world.log(f'the clock of {host.name} is {skew:+.1f} s off')
        self._then(seconds)

    @stateful.rule(seconds=_LONG)
    def hide(self, seconds):
        self.world.log('Ironic hides all nodes')
        self.world.hidden = True
        self._then(seconds)
        self.world.log('Ironic shows the nodes again')
        self.world.hidden = False
        self.world.disturbed_at = self.world.now

    # What users do

    @stateful.rule(number=st.integers(0, 1), seconds=_SECONDS)
    def enroll(self, number, seconds):
        self.world.enroll(self._group(number) or '')
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def remove(self, data, seconds):
        self.world.remove(self._node(data, free=True))
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def boot(self, data, seconds):
        self.world.boot(self._node(data, free=True))
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def delete(self, data, seconds):
        node = self._node(data, free=False)
        self.world.delete(self.world.nodes[node].instance)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def work(self, data, seconds):
        """Something is being done with an instance, or is done."""
        node = self._node(data, free=False)
        instance = self.world.instances[self.world.nodes[node].instance]
        instance.is_busy = not instance.is_busy
        self.world.log(f'{instance.name} is '
                       f'{"busy" if instance.is_busy else "idle"}')
        self._then(seconds)

    @stateful.precondition(lambda self: len(self.GROUPS) > 1)
    @stateful.rule(data=st.data(), free=st.booleans(), seconds=_SECONDS)
    def regroup(self, data, free, seconds):
        node = self.world.nodes[self._node(data, free)]
        node.group = data.draw(st.sampled_from(self.GROUPS))
        self.world.disturbed_at = self.world.now
        self.world.log(f'node {node.name[-3:]} is now in "{node.group}"')
        self._then(seconds)

    # What has to come of it

    def heal(self) -> None:
        """Bring all back to order."""
        for host in self.world.hosts.values():
            host.is_cut_off = False
            host.skew = 0
            host.disturbed_at = min(host.disturbed_at, self.world.now)
        for instance in self.world.instances.values():
            instance.is_busy = False

    @stateful.rule()
    def settle(self):
        """After a quiet time all is where it belongs, and stays there."""
        self.heal()
        self.world.log('from here on, it is quiet')
        until = max([self.world.now, self.world.stalled_until,
                     *(host.frozen_until
                       for host in self.world.hosts.values())])
        self.world.run(until - self.world.now + self.QUIET)
        self.world.check_settled(list(self.GROUPS), self.IS_LEAST)
        before = len(self.world.moves)
        self.world.run(3 * simulated.PASS_INTERVAL)
        if len(self.world.moves) != before:
            self.world.fail('A node moves although nothing has happened')
        self.settled = True

    def _members(self) -> set[str]:
        return set().union(*map(self.world.members, self.GROUPS))

    def _owners(self) -> dict[str, str]:
        return {node: row.owner for node, row in self.world.rows.items()}

    @stateful.precondition(lambda self: self.settled and self.IS_LEAST)
    @stateful.rule(length=_LONG)
    def stall_alone(self, length):
        """Nothing moves because the database stands still."""
        before = len(self.world.moves)
        self.world.stall(length)
        self.world.run(length + simulated.QUIET)
        if len(self.world.moves) != before:
            self.world.fail('A node moves for nothing')

    @stateful.precondition(lambda self: self.settled and self.IS_LEAST)
    @stateful.rule(data=st.data(), event=st.sampled_from(
        ['start', 'crash', 'disable', 'enroll', 'boot', 'delete']))
    def one_event(self, data, event):
        """From where all is quiet, no node moves more often than it has to."""
        before, count = self._owners(), len(self.world.moves)
        getattr(self, event)(**(
            {'number': 0} if event == 'enroll' else {'data': data}),
            seconds=0)
        self.world.run(simulated.QUIET)
        after = self._owners()
        needed = sum(after.get(node, owner) != owner
                     for node, owner in before.items())
        moved = len(self.world.moves) - count
        # One that has no node is not known to the others.
        if moved != needed and self._members() <= set(
                before.values()) & set(after.values()):
            self.world.fail(f'{moved} moves, where {needed} are needed')
        self.world.check_settled(list(self.GROUPS), self.IS_LEAST)
        self.settled = True


class BenignMachine(Machine):
    """The same, where services only come and go, as they should."""

    def set_up(self, seed, hosts, nodes):
        super().set_up(seed, hosts, nodes)
        self.world.is_benign = True
    set_up = stateful.initialize(
        seed=st.integers(0, 2**16), hosts=st.integers(1, 4),
        nodes=st.integers(4, 12))(set_up)

    # What is no rule here.
    freeze = stall = cut_off = force_down = set_clock = hide = None
    stall_alone = None


class QuarrelMachine(stateful.RuleBasedStateMachine):
    """Three services, whatever each believes who its peers are."""

    @stateful.initialize(seed=st.integers(0, 2**16))
    def set_up(self, seed):
        self.world = simulated.World(seed)
        for _ in range(12):
            self.world.enroll()
        for name in 'abc':
            self.world.start(name, group='', peers=('a', 'b', 'c'))
        self.world.run(simulated.QUIET)

    @stateful.rule(data=st.data())
    def quarrel(self, data):
        """They agree to disagree, and find together when they see alike."""
        before = len(self.world.moves)
        for host in self.world.hosts.values():
            host.peers = (host.name, *data.draw(st.sets(
                st.sampled_from('abc'))))
            host.disturbed_at = float('inf')
            self.world.log(f'the peers of {host.name} are {host.peers}')
        self.world.run(60)
        moves = collections.Counter(
            move.node for move in self.world.moves[before:])
        # None of them takes it more than three times.
        if max(moves.values(), default=0) > 9:
            self.world.fail('A node goes round and round')
        self.world.log('from here on, all see the same')
        for host in self.world.hosts.values():
            host.peers = ('a', 'b', 'c')
            host.disturbed_at = self.world.now
        # One that was left without a node waits until it may try again.
        self.world.run(simulated.QUIET + 80 * simulated.HANDOVER_TIMEOUT)
        self.world.check_settled([''], True)


class FollowMachine(Machine):
    """The same where instances go with the ring."""

    FOLLOWS = True


class GroupsMachine(Machine):
    """The same with two conductor groups."""

    GROUPS = ('', 'group')


class MixedMachine(Machine):
    """The same with every second service on Nova's own driver."""

    KINDS = (simulated.Host, simulated.StockHost)
    # Nova's own moves more nodes than are needed, and takes back what others
    # need.
    IS_LEAST = False
    QUIET = simulated.QUIET + 8 * 10 * simulated.HANDOVER_TIMEOUT

    def heal(self) -> None:
        super().heal()
        # While it is disabled or forced down, Nova's own counts itself in, and
        # never stops to take nodes.
        for service in self.world.services.values():
            service.disabled = service.forced_down = False


RingTestCase = Machine.TestCase
BenignTestCase = BenignMachine.TestCase
QuarrelTestCase = QuarrelMachine.TestCase
FollowTestCase = FollowMachine.TestCase
GroupsTestCase = GroupsMachine.TestCase
MixedTestCase = MixedMachine.TestCase
# Of these each takes long.
for _case in MixedTestCase, QuarrelTestCase:
    _case.settings = hypothesis.settings(
        _case.settings, max_examples=_case.settings.max_examples // 8,
        stateful_step_count=10)


@atexit.register
def _tell() -> None:
    if os.environ.get('HYPOTHESIS_PROFILE') == 'long':
        print(', '.join(f'{count} {what}' for what, count in _steps.items()))
