# SPDX-License-Identifier: Apache-2.0

"""Causes random events on a lab for long, and prints what is wrong then.

``python -m nova_ironic_ring_tools.soak``
"""

import argparse
import collections
from collections.abc import Iterator, Sequence
import dataclasses
import random
import sys
import time

from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions

from nova_ironic_ring.core.values import plural
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import tenant
from nova_ironic_ring_tools.soak import acts
from nova_ironic_ring_tools.soak import end
from nova_ironic_ring_tools.soak import growth
from nova_ironic_ring_tools.soak import owners
from nova_ironic_ring_tools.soak import world as worlds
from nova_ironic_ring_tools import updates

_DRIVERS = {'ring': lab_state.RING_DRIVER, 'pool': lab_state.POOL_DRIVER}
_NODES = 12
# Seconds between two events, at least and at most.
_PAUSE = (0.5, 4.0)
# How many minutes are needed to see whether services grow; and the fraction of
# the time after which the services have all the memory that they keep.
_LEAST = 4
_WARM = 0.25


@dataclasses.dataclass
class Story:
    """The events on a lab.

    :ivar begin: when they began, in seconds
    :ivar happened: how often each event has happened, by its name
    :ivar refused: how often each event was refused, by its name
    """

    begin: float = dataclasses.field(default_factory=time.monotonic)
    happened: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)
    refused: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)

    def tell(self, said: str) -> None:
        """Print what happens now.

        :param said: the text to print
        """
        print(f'[{time.monotonic() - self.begin:5.0f} s] {said}', flush=True)

    def lines(self) -> Iterator[str]:
        """Return the numbers of events, as lines of text."""
        for counts, what in ((self.happened, 'happened'),
                             (self.refused, 'refused')):
            each = ', '.join(f'{name} {count}'
                             for name, count in sorted(counts.items()))
            yield (f'{plural.of(counts.total(), "event")} {what}: '
                   f'{each or "none"}')


def soak(driver: str, minutes: float, seed: int, interval: int) -> tuple[
        list[str], list[str]]:
    """Cause random events on a lab, and look for what is wrong in the end.

    :param driver: ``ring`` or ``pool``
    :param minutes: for how long
    :param seed: the seed of the random numbers
    :param interval: seconds after which an unchanged node is updated
    :returns: two lists of lines: what has happened, and what is wrong
    :raises LabError: if a service dies by itself
    """
    fixture = cloud.Cloud(
        place.directory(f'soak-{driver}'), driver=_DRIVERS[driver],
        computes=0, node_count=0, groups=tuple(worlds.GROUPS), volumes=True,
        options=updates.options(interval),
        progress=print)
    with fixture:
        lab = fixture.lab
        try:
            done, wrong = _cause_events(lab, minutes, seed)
        except Exception:
            print(f'The logs are in {lab.keep_logs()}.', flush=True)
            raise
        if wrong:
            done.append(f'The logs are in {lab.keep_logs()}.')
        return done, wrong


def _cause_events(lab: cloud.Lab, minutes: float, seed: int) -> tuple[
        list[str], list[str]]:
    """As :func:`soak`, on a lab without nodes and nova-computes."""
    _furnish(lab)
    link = lab.connect()
    network = link.network.create_network(name='soak')
    link.network.create_subnet(
        network_id=network.id, ip_version=4, cidr='198.51.100.0/24')
    world = worlds.World(lab, random.Random(seed), network.id)
    story = Story()
    _live(world, story, minutes * 60 * _WARM)
    story.tell('a rest')
    warm = growth.at_rest(lab)
    _live(world, story, minutes * 60 * (1 - _WARM))
    _bring_back(world, story)
    wrong = end.complaints(world, story.refused)
    last = growth.at_rest(lab)
    done = [*story.lines(), *growth.table(warm, last)]
    if minutes < _LEAST:
        done.append('This was too short to see whether services grow.')
    else:
        wrong += growth.complaints(warm, last)
    return done, wrong


def _furnish(lab: cloud.Lab) -> None:
    """Give a lab its nodes and services."""
    for group, hosts in worlds.GROUPS.items():
        lab.enroll(_NODES, conductor_group=group)
        for host in hosts:
            if host != worlds.NEWCOMER:
                lab.add_compute(host, worlds.options(host),
                                growth.environment(host))
    for host in lab.state.computes:
        lab.wait_alive(host)
    lab.discover_hosts()
    # Until then, Nova moves none between aggregates.
    lab.wait('Nodes of each', lambda: all(
        lab.shares().get(host) for host in lab.state.computes))
    for group, zone in worlds.ZONES.items():
        for host in worlds.GROUPS[group]:
            if host in lab.state.computes:
                tenant.move(lab.state, host, zone)


def _live(world: worlds.World, story: Story, seconds: float) -> None:
    """Cause random events for a time.

    :raises LabError: if a service dies by itself
    """
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        # What dies by itself is no event that was refused.
        world.lab.check()
        (act,) = world.chance.choices(
            acts.ACTS, [act.weight for act in acts.ACTS])
        try:
            for host, what in world.returning(now):
                story.tell(f'end of {what}: {host}')
            said = act.do(world)
        except (exceptions.SDKException, errors.LabError,
                keystone_exceptions.ClientException) as error:
            story.refused[act.name] += 1
            said = f'{act.name}: refused: {error}'.splitlines()[0]
        else:
            story.happened[act.name] += said is not None
        if said:
            story.tell(said)
        time.sleep(world.chance.uniform(*_PAUSE))
    world.wait_for_answers()


def _bring_back(world: worlds.World, story: Story) -> None:
    """Make all services work again."""
    for host, what in world.returning(float('inf')):
        story.tell(f'end of {what}: {host}')
    for host in world.lab.state.computes:
        world.lab.wait_alive(host)
    while world.wrong:
        story.tell(str(owners.mend(world)))


def main(arguments: Sequence[str]) -> int:
    """Cause random events on a lab of each driver.

    :param arguments: of the command line
    :returns: the exit status: 1 if something is wrong in the end, 2 if a lab
        has failed
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.soak', description=__doc__)
    parser.add_argument('--driver', nargs='+', choices=list(_DRIVERS),
                        default=list(_DRIVERS),
                        help='which ones, one after the other')
    parser.add_argument('--minutes', type=float, default=60, metavar='N',
                        help='for how long with each (default: 60)')
    parser.add_argument('--seed', type=int, metavar='N',
                        default=random.SystemRandom().randrange(10 ** 6),
                        help='the seed of the random numbers (default: '
                        'another one each time)')
    updates.add_argument(parser)
    chosen = parser.parse_args(arguments)
    interval = chosen.full_update_interval
    status = 0
    results = []
    for driver in chosen.driver:
        title = (f'{driver}, {chosen.minutes:g} minutes, seed {chosen.seed}, '
                 f'{updates.headline(interval)}')
        print(title, flush=True)
        try:
            done, wrong = soak(
                driver, chosen.minutes, chosen.seed, interval)
        except errors.LabError as error:
            done, wrong = [], [f'The lab has failed: {error}']
            status = 2
        else:
            status = status or int(bool(wrong))
        results.append('\n'.join([
            title, *(f'  {line}' for line in done),
            *(f'  WRONG: {line}' for line in wrong),
            '' if wrong else '  All is well.']).rstrip())
        print(results[-1], flush=True)
    if len(results) > 1:
        print('\n\nThe results:\n' + '\n'.join(results), flush=True)
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
