# SPDX-License-Identifier: Apache-2.0

"""Many services that run real passes, whatever befalls them.

The number of examples is Hypothesis's profile's: see ``tox.ini`` for the long
run, which prints how many calls of a port the services made.
"""

import atexit
import collections
import functools
import os
from unittest import mock

import ddt
import fixtures
import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st
from oslotest import base

from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.values import model
from nova_ironic_ring.tests.unit.simulation import host as hosts
from nova_ironic_ring.tests.unit.simulation import invariants
from nova_ironic_ring.tests.unit.simulation import stock
from nova_ironic_ring.tests.unit.simulation import times
from nova_ironic_ring.tests.unit.simulation import world as worlds

hypothesis.settings.register_profile(
    'default', max_examples=8, stateful_step_count=20, deadline=None,
    derandomize=True, print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck))
hypothesis.settings.register_profile(
    'long', hypothesis.settings.get_profile('default'), derandomize=False,
    max_examples=int(os.environ.get('SIMULATION_EXAMPLES', '60')))
hypothesis.settings.load_profile(
    os.environ.get('HYPOTHESIS_PROFILE', 'default'))

_MOST_HOSTS = 5
_SECONDS = st.floats(0, 12, allow_nan=False)
_OUTAGE = st.floats(1, 2 * times.PATIENCE, allow_nan=False)
_LONG = st.floats(1, 40, allow_nan=False)
_SKEW = st.floats(-300, 300, allow_nan=False)
# Where it matters most that a service may die, or stand still.
_CALLS = st.sampled_from([
    'services', 'now', 'nodes', 'instances_of', 'rows_of', 'rows',
    'instances', 'delete_row', 'set_instance_host', 'consumers', 'end_build',
    'free', 'record', 'members', 'say_member', 'take_rows', 'in_use'])
_TAKEOVER_CALLS = st.sampled_from([
    'rows', 'instances', 'delete_row', 'set_instance_host', 'record'])
_steps: collections.Counter[str] = collections.Counter()


class BaseMachine(stateful.RuleBasedStateMachine):
    """Has a world."""

    def make_world(self, seed: int) -> None:
        """Make the world.

        :param seed: what the times of all that happens come from
        """
        self.world = worlds.World(seed)
        self._patch = mock.patch.object(planner, 'decide', functools.partial(
            invariants.decide, self.world))
        self._patch.start()

    def teardown(self):
        if not hasattr(self, 'world'):
            return
        self._patch.stop()
        _steps['examples'] += 1
        _steps['steps'] += self.world.steps
        _steps['moves'] += len(self.world.rules.moves)
        for host in list(self.world.services.values()):
            host.end()


class Machine(BaseMachine):
    """Plays what can befall a ring of services without groups."""

    GROUPS: tuple[str | None, ...] = (None,)
    #: Whether there are peer lists where there are groups.
    HAS_LISTS = True
    KINDS: tuple[type[hosts.Host], ...] = (hosts.Host,)
    IS_OURS = True
    FOLLOWS = False
    QUIET = times.QUIET

    @stateful.initialize(
        seed=st.integers(0, 2**16), services=st.integers(1, 4),
        nodes=st.integers(0, 12))
    def set_up(self, seed, services, nodes):
        self.make_world(seed)
        self.world.follows = self.FOLLOWS
        for number in range(nodes):
            self.world.enroll(self._group(number) or '')
        for number in range(services):
            self._start(number)
        self.settled = False

    # Helpers

    def _group(self, number: int) -> str | None:
        return self.GROUPS[number % len(self.GROUPS)]

    def _start(self, number: int) -> None:
        group = self._group(number)
        peers = tuple(f'Host-{each}' for each in range(_MOST_HOSTS)
                      if self._group(each) == group)
        self.world.start(f'Host-{number}', group,
                         peers if group is not None and self.HAS_LISTS else (),
                         self.KINDS[number % len(self.KINDS)])

    def _host(self, data) -> hosts.Host:
        hypothesis.assume(self.world.services)
        return self.world.services[
            data.draw(st.sampled_from(sorted(self.world.services)))]

    def _record(self, data) -> model.Service:
        hypothesis.assume(self.world.cloud.services)
        return self.world.cloud.services[
            data.draw(st.sampled_from(sorted(self.world.cloud.services)))]

    def _node(self, data, free: bool) -> str:
        nodes = [node for node in sorted(self.world.cloud.nodes)
                 if self.world.is_free(node) == free]
        hypothesis.assume(nodes)
        return data.draw(st.sampled_from(nodes))

    def _instance(self, data) -> str:
        hypothesis.assume(self.world.cloud.instances)
        return data.draw(st.sampled_from(sorted(self.world.cloud.instances)))

    def _then(self, seconds: float) -> None:
        self.settled = False
        self.world.run(seconds)

    # What befalls the services

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def start(self, data, seconds):
        free = [number for number in range(_MOST_HOSTS)
                if f'host-{number}' not in self.world.services]
        hypothesis.assume(free)
        self._start(data.draw(st.sampled_from(free)))
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def crash(self, data, seconds):
        self.world.crash(self._host(data))
        self._then(seconds)

    @stateful.rule(data=st.data(), length=_LONG, seconds=_SECONDS)
    def terminate(self, data, length, seconds):
        """A service gets SIGTERM."""
        host = self._host(data)
        hypothesis.assume(not host.process.ending and host.is_receiving)
        self.world.terminate(host, length)
        self._then(seconds)

    @stateful.rule(data=st.data(), length=_LONG, seconds=_SECONDS)
    def freeze(self, data, length, seconds):
        self.world.freeze(self._host(data), length)
        self._then(seconds)

    @stateful.rule(length=_LONG, seconds=_SECONDS)
    def stall(self, length, seconds):
        self.world.stall(length)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def cut_off(self, data, seconds):
        host = self._host(data)
        self.world.cut_off(host, not host.is_cut_off)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def lose_ironic(self, data, seconds):
        host = self._host(data)
        self.world.lose_ironic(host, host.has_ironic)
        self._then(seconds)

    @stateful.rule(share=st.sampled_from([0, 0.05, 0.2]), seconds=_SECONDS)
    def lose_answers(self, share, seconds):
        """Writes are done, and answer an error."""
        self.world.lose_answers(share)
        self._then(seconds)

    @stateful.rule(data=st.data(), call=_CALLS, length=_LONG,
                   moment=st.sampled_from(['before', 'after']),
                   what=st.sampled_from(['crash', 'freeze', 'cut_off']),
                   seconds=_SECONDS)
    def trap(self, data, call, moment, what, length, seconds):
        """Something befalls a service at a certain place of a pass."""
        host = self._host(data)
        host.traps[call, moment] = {
            'crash': lambda: self.world.crash(host),
            'freeze': lambda: self.world.freeze(host, length),
            'cut_off': lambda: self.world.cut_off(host)}[what]
        self._then(seconds)

    @stateful.rule(data=st.data(), call=_TAKEOVER_CALLS,
                   moment=st.sampled_from(['before', 'after']),
                   is_fatal=st.booleans(), length=st.floats(15, 60))
    def interrupt(self, data, call, moment, is_fatal, length):
        """A service dies, and something befalls who takes over from it."""
        dead = self._host(data)
        self.world.crash(dead)

        def befall(host: hosts.Host) -> None:
            for each in self.world.services.values():
                each.traps.clear()
            if is_fatal:
                self.world.crash(host)
            else:
                self.world.freeze(host, length)

        for host in self.world.services.values():
            host.traps[f'takeover: {call}', moment] = functools.partial(
                befall, host)
        self._then(length + times.DETECTION)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def disable(self, data, seconds):
        service = self._record(data)
        self.world.bar(service.name, disabled=not service.disabled)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def force_down(self, data, seconds):
        service = self._record(data)
        self.world.bar(service.name, forced_down=not service.forced_down)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS, skew=_SKEW)
    def set_clock(self, data, skew, seconds):
        """The clock of a machine steps, which must not matter."""
        self._set_clock(self._record(data).name, skew)
        self._then(seconds)

    def _set_clock(self, name: str, skew: float) -> None:
        self.world.skews[name] = skew
        self.world.log(f'the clock of {name} is {skew:+.1f} s off')

    @stateful.rule(seconds=_LONG)
    def hide(self, seconds):
        self.world.hide(True)
        self._then(seconds)
        self.world.hide(False)

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
    def boot_all(self, data, seconds):
        """Many builds are under way at once."""
        for node in sorted(self.world.cloud.nodes):
            if self.world.is_free(node):
                self.world.boot(node)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def delete(self, data, seconds):
        self.world.delete(self._instance(data))
        self._then(seconds)

    @stateful.rule(data=st.data(), building=st.floats(0, 4),
                   length=st.floats(times.DOWN_TIME, 3 * times.DOWN_TIME),
                   seconds=_SECONDS)
    def delete_in_silence(self, data, building, length, seconds):
        """A service stands still, and users delete what it was building."""
        host = self._host(data)
        self.boot_all(None, building)
        hypothesis.assume(host.lives)
        self.world.freeze(host, length)
        self.world.run(times.DOWN_TIME)
        for uuid, instance in sorted(self.world.cloud.instances.items()):
            if instance.host_name == host.me:
                self.world.delete(uuid)
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def work(self, data, seconds):
        """Something is being done with an instance, or is done."""
        self.world.work(self._instance(data))
        self._then(seconds)

    @stateful.precondition(lambda self: len(self.GROUPS) > 1)
    @stateful.rule(data=st.data(), free=st.booleans(), seconds=_SECONDS)
    def regroup(self, data, free, seconds):
        self.world.regroup(self._node(data, free),
                           data.draw(st.sampled_from(self.GROUPS)))
        self._then(seconds)

    # What has to come of it

    @stateful.rule()
    def settle(self):
        """After a quiet time all is where it belongs, and stays there."""
        self.heal()
        self.world.log('from here on, it is quiet')
        self.world.run(self.world.quiet_from() - self.world.now + self.QUIET)
        self._check_settled()
        if self.world.rules.scarce(list(self.GROUPS)):
            return
        before = len(self.world.rules.moves)
        self.world.run(3 * times.PASS_INTERVAL)
        if len(self.world.rules.moves) != before:
            self.world.fail('A node moves although nothing has happened')
        self.settled = True

    def heal(self) -> None:
        """Bring all back to order."""
        self.world.heal()

    def _check_settled(self) -> None:
        self.world.rules.check_settled(list(self.GROUPS), self.IS_OURS)

    def _members(self) -> set[str]:
        return set().union(*map(self.world.members, self.GROUPS))

    def _owners(self) -> dict[str, str]:
        return {node: model.canonical(row.owner)
                for node, row in self.world.cloud.rows.items()}

    def _require_nothing(self, seconds: float) -> None:
        """See that no node moves."""
        before = len(self.world.rules.moves)
        self.world.run(seconds)
        if len(self.world.rules.moves) != before:
            self.world.fail('A node moves for nothing')

    @stateful.precondition(lambda self: self.settled and self.IS_OURS)
    @stateful.rule(length=_LONG)
    def stall_alone(self, length):
        """Nothing moves because the database stands still."""
        self.world.stall(length)
        self._require_nothing(length + times.QUIET)

    @stateful.precondition(lambda self: self.settled and self.IS_OURS)
    @stateful.rule(length=_OUTAGE, is_ironic=st.booleans())
    def outage_alone(self, length, is_ironic):
        """Nothing moves because nobody has Ironic, or Placement."""
        before = len(self.world.rules.moves)
        for is_over in False, True:
            if is_ironic:
                for host in self.world.services.values():
                    self.world.lose_ironic(host, not is_over)
            else:
                self.world.fail_placement(not is_over)
            self.world.run(times.QUIET if is_over else length)
        self.world.run(times.PATIENCE)
        if len(self.world.rules.moves) != before:
            self.world.fail('A node moves for nothing')

    @stateful.precondition(lambda self: self.settled and self.IS_OURS)
    @stateful.rule(data=st.data())
    def lose_ironic_alone(self, data):
        """A service whose passes fail has its free nodes taken, no more."""
        host = self._host(data)
        instances = dict(self.world.cloud.instances)
        self.world.lose_ironic(host)
        # What becomes of its nodes is seen in the passes of the others.
        self.world.run(times.PATIENCE + times.QUIET)
        self.world.lose_ironic(host, False)
        self.world.run(times.QUIET)
        self._check_settled()
        if instances != self.world.cloud.instances:
            self.world.fail('An instance moves or ends')

    @stateful.precondition(lambda self: self.settled and self.IS_OURS)
    @stateful.rule(data=st.data(), skew=_SKEW)
    def set_clock_alone(self, data, skew):
        """Nothing moves because a clock steps."""
        self._set_clock(self._record(data).name, skew)
        self._require_nothing(times.DETECTION)

    @stateful.precondition(lambda self: self.settled and self.IS_OURS)
    @stateful.rule(data=st.data(), event=st.sampled_from(
        ['start', 'crash', 'disable', 'enroll', 'boot', 'delete']))
    def one_event(self, data, event):
        """From where all is quiet, no node moves more often than it has to."""
        moves = self.world.rules.moves
        before, count = self._owners(), len(moves)
        getattr(self, event)(**(
            {'number': 0} if event == 'enroll' else {'data': data}),
            seconds=0)
        self.world.run(times.QUIET)
        after = self._owners()
        needed = sum(after.get(node, owner) != owner
                     for node, owner in before.items())
        moved = len(moves) - count
        # One that has no node is not known to the others.
        if moved != needed and self._members() <= set(
                before.values()) & set(after.values()):
            self.world.fail(f'{moved} moves, where {needed} are needed')
        self._check_settled()
        self.settled = True


class BenignMixin:
    """Services only come and go, as they should: mixed in before a machine."""

    def set_up(self, seed, services, nodes):
        super().set_up(seed, services, nodes)
        self.world.is_benign = True
    set_up = stateful.initialize(
        seed=st.integers(0, 2**16), services=st.integers(1, 4),
        nodes=st.integers(4, 12))(set_up)

    # What is no rule here.
    freeze = stall = cut_off = trap = interrupt = force_down = hide = None
    delete_in_silence = stall_alone = lose_ironic = outage_alone = None
    lose_ironic_alone = None


class BenignMachine(BenignMixin, Machine):
    """The same, where services only come and go, as they should."""


class TakeoverMachine(Machine):
    """Services that die one after the other, with an instance on each node."""

    def set_up(self, seed, services, nodes):
        super().set_up(seed, services, nodes)
        self.world.run(self.QUIET)
        self.boot_all(None, 15)
    set_up = stateful.initialize(
        seed=st.integers(0, 2**16), services=st.integers(3, 5),
        nodes=st.integers(6, 12))(set_up)

    # What is no rule here.
    stall = disable = force_down = set_clock = hide = enroll = remove = None
    work = stall_alone = set_clock_alone = one_event = None
    lose_ironic = outage_alone = lose_ironic_alone = None


class OutageMachine(Machine):
    """A ring that is well, where the way to the database is not."""

    def set_up(self, seed, services, nodes):
        super().set_up(seed, services, nodes)
        self.settle()
    set_up = stateful.initialize(
        seed=st.integers(0, 2**16), services=st.integers(3, 5),
        nodes=st.integers(6, 12))(set_up)

    # What is no rule here.
    start = crash = terminate = trap = interrupt = disable = force_down = None
    hide = enroll = remove = boot = boot_all = delete = work = None
    delete_in_silence = one_event = None


class DisputeMachine(BaseMachine):
    """Three services, whatever each believes who its peers are."""

    @stateful.initialize(seed=st.integers(0, 2**16))
    def set_up(self, seed):
        self.make_world(seed)
        for _ in range(12):
            self.world.enroll()
        for name in 'abc':
            self.world.start(name, '', ('a', 'b', 'c'))
        self.world.run(times.QUIET)

    @stateful.rule(data=st.data())
    def dispute(self, data):
        """They agree to disagree, and find together when they see alike."""
        moves = self.world.rules.moves
        before = len(moves)
        for host in self.world.services.values():
            host.peers = (host.name, *sorted(data.draw(st.sets(
                st.sampled_from('abc')))))
            self.world.disturb(host, float('inf'))
            self.world.log(f'the peers of {host.name} are {host.peers}')
        self.world.run(60)
        counts = collections.Counter(move.node for move in moves[before:])
        # Only to a service that sees the same ring.
        if max(counts.values(), default=0) > 1:
            self.world.fail('A node goes round and round')
        self.world.log('from here on, all see the same')
        for host in self.world.services.values():
            host.peers = ('a', 'b', 'c')
            self.world.calm(host)
        self.world.run(times.QUIET)
        self.world.rules.check_settled([''], True)


class FollowMachine(Machine):
    """The same where instances go with the ring."""

    FOLLOWS = True


class GroupsMachine(Machine):
    """The same with two conductor groups."""

    GROUPS = ('', 'group')


class ScopesMachine(GroupsMachine):
    """The same without peer lists, and with services that change groups."""

    HAS_LISTS = False

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def change_group(self, data, seconds):
        """A service is given another group, by SIGHUP."""
        host = self._host(data)
        self.world.change_group(
            host, data.draw(st.sampled_from(self.GROUPS)))
        self._then(seconds)


class ShardsMachine(Machine):
    """The same where the nodes are divided by their shards."""

    SHARDS = ('p', 'q', 'r', 's', 't', None)

    def set_up(self, seed, services, nodes):
        super().set_up(seed, services, 0)
        for number in range(nodes):
            self._enroll(number)
    set_up = stateful.initialize(
        seed=st.integers(0, 2**16), services=st.integers(1, 4),
        nodes=st.integers(0, 12))(set_up)

    def _start(self, number):
        name = f'host-{number}'
        if name not in self.world.lives:
            self.world.by_shards.add(name)
        super()._start(number)

    def _enroll(self, number):
        self.world.enroll(shard=self.SHARDS[number % len(self.SHARDS)])

    @stateful.rule(number=st.integers(0, 5), seconds=_SECONDS)
    def enroll(self, number, seconds):
        self._enroll(number)
        self._then(seconds)

    @stateful.rule(data=st.data(), free=st.booleans(), seconds=_SECONDS)
    def reshard(self, data, free, seconds):
        self.world.reshard(self._node(data, free),
                           data.draw(st.sampled_from(self.SHARDS)))
        self._then(seconds)

    @stateful.rule(data=st.data(), seconds=_SECONDS)
    def change_listing(self, data, seconds):
        """A service is given another listing, by SIGHUP."""
        self.world.change_listing(self._host(data))
        self._then(seconds)


class AdversaryMachine(Machine):
    """The same where somebody writes what they like into some of the nodes."""

    SHARDS: tuple[str | None, ...] = ()

    def set_up(self, seed, services, nodes):
        super().set_up(seed, services, nodes)
        found = self.world.adversary
        for node in sorted(self.world.cloud.nodes)[::3]:
            found.own(node)
        found.shards = self.SHARDS
        if len(self.GROUPS) > 1:
            found.groups = self.GROUPS
    set_up = stateful.initialize(
        seed=st.integers(0, 2**16), services=st.integers(1, 4),
        nodes=st.integers(1, 12))(set_up)

    @stateful.rule(seconds=_SECONDS)
    def go_on(self, seconds):
        """After a quiet time, they begin anew."""
        self.world.adversary.rests = False
        self._then(seconds)


class BenignAdversaryMachine(BenignMixin, AdversaryMachine):
    """The same where services only come and go, as they should."""


class GroupsAdversaryMachine(AdversaryMachine, ScopesMachine):
    """The same with two conductor groups, into which nodes may be put."""


class ShardsAdversaryMachine(AdversaryMachine, ShardsMachine):
    """The same with shards, into which nodes may be put."""

    SHARDS = ShardsMachine.SHARDS


class BenignShardsMachine(BenignMixin, ShardsMachine):
    """The same where services only come and go, as they should."""

    # What is no rule here.
    change_listing = None


class MixedMachine(Machine):
    """The same with every second service on Nova's own driver."""

    KINDS = (hosts.Host, stock.StockHost)
    # Nova's own moves more nodes than are needed, and takes back what others
    # need.
    IS_OURS = False
    QUIET = times.QUIET + 8 * 10 * times.HANDOVER_TIMEOUT

    def heal(self) -> None:
        super().heal()
        # While it is disabled or forced down, Nova's own counts itself in, and
        # never stops to take nodes.
        for name in self.world.barred_since.copy():
            self.world.bar(name, disabled=False, forced_down=False)


@ddt.ddt
class LongPassesTestCase(base.BaseTestCase):
    """Instances of a dead service do not wait for a pass."""

    NODES = 12

    def setUp(self):
        super().setUp()
        self.world = worlds.World(7)
        self.useFixture(fixtures.MockPatchObject(
            planner, 'decide', functools.partial(
                invariants.decide, self.world)))
        self._enroll()
        for name in 'abc':
            self.world.start(name)
        self.addCleanup(self._end)
        self.world.run(times.QUIET)
        for node in sorted(self.world.cloud.nodes):
            self.world.boot(node)
        self.world.run(times.QUIET)
        # The pass after the next one never comes.
        self.useFixture(fixtures.MockPatchObject(
            times, 'PASS_INTERVAL', 100000))
        self.world.run(times.DOWN_TIME)
        self.dead = self.world.services['c']

    def _enroll(self) -> None:
        for _ in range(self.NODES):
            self.world.enroll()

    def _end(self) -> None:
        for host in list(self.world.services.values()):
            host.end()

    def _left(self) -> list[str]:
        """Name the instances and the rows that the dead service has."""
        return [
            uuid for uuid, instance in self.world.cloud.instances.items()
            if instance.host == 'c'] + [
            node for node, row in self.world.cloud.rows.items()
            if row.owner == 'c' and self.world.cloud.nodes[node].instance]

    def _end_takeovers(self) -> None:
        """See that each node has a row."""
        # The one of the last takeover may just be deleted, to be made anew.
        self.world.run(times.REPORT_INTERVAL)
        self.assertEqual(self.NODES, len(self.world.cloud.rows))

    @ddt.data((True, 0), (False, times.FAILOVER_AFTER))
    @ddt.unpack
    def test_death(self, is_forced_down, seconds):
        self.assertNotEqual([], self._left())
        self.world.crash(self.dead)
        if is_forced_down:
            self.world.bar('c', forced_down=True)
        # The last heartbeat is seen in one look, and its age in another.
        self.world.run(seconds + 3 * times.REPORT_INTERVAL)
        self.assertEqual([], self._left())
        self._end_takeovers()
        self.assertEqual({'a', 'b'}, {
            row.owner for row in self.world.cloud.rows.values()})


class LongPassesByShardsTestCase(LongPassesTestCase):
    """Nor do those in shards that nobody else has listed."""

    def _enroll(self) -> None:
        self.world.by_shards = {*'abc'}
        for number in range(12):
            self.world.enroll(shard=f'shard-{number % 6}')


class HiddenTakeoverTestCase(LongPassesTestCase):
    """Takeovers delete more rows than nodes may vanish."""

    NODES = 30

    def test_while_ironic_hides_the_nodes(self):
        self.assertLess(5, sum(
            row.owner == 'c' for row in self.world.cloud.rows.values()))
        self.world.hide(True)
        self.world.crash(self.dead)
        self.world.bar('c', forced_down=True)
        self.world.run(3 * times.REPORT_INTERVAL)
        self.assertEqual([], self._left())
        self._end_takeovers()

    def test_rows_that_nobody_takes_over(self):
        rules, host = self.world.rules, self.world.services['a']
        self.world.hide(True)
        *nodes, last = sorted(
            node for node, row in self.world.cloud.rows.items()
            if row.owner == 'a')[:6]
        for node in nodes:
            rules.check_deletion(host, node, self.world.cloud.rows.pop(node))
        self.assertRaises(
            invariants.InvariantError, rules.check_deletion, host, last,
            self.world.cloud.rows[last])


RingTestCase = Machine.TestCase
BenignTestCase = BenignMachine.TestCase
TakeoverTestCase = TakeoverMachine.TestCase
OutageTestCase = OutageMachine.TestCase
DisputeTestCase = DisputeMachine.TestCase
FollowTestCase = FollowMachine.TestCase
GroupsTestCase = GroupsMachine.TestCase
ScopesTestCase = ScopesMachine.TestCase
ShardsTestCase = ShardsMachine.TestCase
AdversaryTestCase = AdversaryMachine.TestCase
BenignAdversaryTestCase = BenignAdversaryMachine.TestCase
GroupsAdversaryTestCase = GroupsAdversaryMachine.TestCase
ShardsAdversaryTestCase = ShardsAdversaryMachine.TestCase
BenignShardsTestCase = BenignShardsMachine.TestCase
MixedTestCase = MixedMachine.TestCase
# Of these each takes long.
for _case in MixedTestCase, DisputeTestCase:
    _case.settings = hypothesis.settings(
        _case.settings, max_examples=_case.settings.max_examples // 8,
        stateful_step_count=5)


@atexit.register
def _tell() -> None:
    if os.environ.get('HYPOTHESIS_PROFILE') == 'long':
        print(', '.join(f'{count} {what}' for what, count in _steps.items()))
