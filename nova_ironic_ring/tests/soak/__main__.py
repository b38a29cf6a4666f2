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

"""Lets much befall a lab for long, by chance, and says what is wrong then.

``python -m nova_ironic_ring.tests.soak``
"""

import argparse
from collections.abc import Sequence
import random
import sys
import time

from keystoneauth1 import exceptions as keystone_exceptions
from openstack import exceptions

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab import state as lab_state
from nova_ironic_ring.tests.soak import acts
from nova_ironic_ring.tests.soak import end
from nova_ironic_ring.tests.soak import growth
from nova_ironic_ring.tests.soak import world as worlds

_DRIVERS = {'ring': lab_state.RING_DRIVER, 'pool': lab_state.POOL_DRIVER}
_NODES = 12
# Seconds between two things that happen, and between two looks at sizes.
_PAUSE = (0.5, 4.0)
_SAMPLE = 60


def soak(driver: str, minutes: float, seed: int) -> list[str]:
    """Let much befall a lab, and say what is wrong in the end.

    :param driver: ``ring`` or ``pool``
    :param minutes: for how long
    :param seed: what chance begins with
    :raises LabError: if a service dies by itself
    """
    fixture = cloud.Cloud(
        place.directory(f'soak-{driver}'), driver=_DRIVERS[driver],
        computes=0, node_count=0, groups=tuple(worlds.GROUPS),
        progress=print)
    with fixture:
        lab = fixture.lab
        _furnish(lab)
        link = lab.connect()
        network = link.network.create_network(name='soak')
        link.network.create_subnet(
            network_id=network.id, ip_version=4, cidr='198.51.100.0/24')
        world = worlds.World(lab, random.Random(seed), network.id)
        samples = _live(world, minutes * 60)
        said = end.complaints(world)
        for name, size in growth.sizes(lab).items():
            print(f'{name}: {size.memory} MiB, {size.threads} threads')
        said += growth.complaints(samples)
        if said:
            print(f'The logs are in {_keep(lab, driver)}.')
        return said


def _furnish(lab: cloud.Lab) -> None:
    """Give a lab its nodes and services."""
    for group, hosts in worlds.GROUPS.items():
        lab.enroll(_NODES, conductor_group=group)
        for host in hosts:
            if host != worlds.NEWCOMER:
                lab.add_compute(host, worlds.options(host))
    for host in lab.state.computes:
        lab.wait_alive(host)
    lab.discover_hosts()


def _live(world: worlds.World, seconds: float) -> list[dict[str, growth.Size]]:
    """Let things happen, and return what services took meanwhile."""
    begin = time.monotonic()
    samples: list[dict[str, growth.Size]] = []
    happened = refused = 0
    while (now := time.monotonic()) < begin + seconds:
        if now >= begin + len(samples) * _SAMPLE:
            samples.append(growth.sizes(world.lab))
        (act,) = world.chance.choices(
            list(acts.ACTS), list(acts.ACTS.values()))
        try:
            for host, what in world.returning(now):
                print(f'[{now - begin:5.0f} s] end of {what}: {host}')
            said = act(world)
        except (exceptions.SDKException, errors.LabError,
                keystone_exceptions.ClientException) as error:
            refused += 1
            said = f'{act.__name__[1:]}: refused: {error}'.splitlines()[0]
        else:
            happened += said is not None
        if said:
            print(f'[{now - begin:5.0f} s] {said}', flush=True)
        time.sleep(world.chance.uniform(*_PAUSE))
    print(f'{happened} things have happened, {refused} were refused.')
    for host, what in world.returning(float('inf')):
        print(f'end of {what}: {host}')
    for host in world.lab.state.computes:
        world.lab.wait_alive(host)
    return samples


def _keep(lab: cloud.Lab, driver: str) -> str:
    """Keep the logs of a lab, and say where."""
    kept = lab.state.directory.with_name(
        f'soak-{driver}-logs-{time.strftime("%H%M%S")}')
    (lab.state.directory / 'log').rename(kept)
    return str(kept)


def main(arguments: Sequence[str]) -> int:
    """Let much befall a lab of each driver.

    :param arguments: of the command line
    :returns: 1 if something is wrong in the end, 2 if a lab has failed
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring.tests.soak', description=__doc__)
    parser.add_argument('--driver', nargs='+', choices=list(_DRIVERS),
                        default=list(_DRIVERS), help='which ones')
    parser.add_argument('--minutes', type=float, default=60, metavar='N',
                        help='for how long with each (default: 60)')
    parser.add_argument('--seed', type=int, metavar='N',
                        default=random.SystemRandom().randrange(10 ** 6),
                        help='what chance begins with (default: another one '
                        'each time)')
    chosen = parser.parse_args(arguments)
    status = 0
    for driver in chosen.driver:
        print(f'{driver}, {chosen.minutes:g} minutes, seed {chosen.seed}')
        try:
            said = soak(driver, chosen.minutes, chosen.seed)
        except errors.LabError as error:
            print(f'{driver}: {error}', file=sys.stderr)
            status = 2
            continue
        print('\n'.join(said) or f'{driver}: all is well.', flush=True)
        status = status or int(bool(said))
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
