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

"""Compares memory and threads of services from the beginning with the end."""

from collections.abc import Sequence
import dataclasses

from nova_ironic_ring.lab import cloud
from nova_ironic_ring.tests.soak import world as worlds

#: The services that live from the beginning to the end.
LASTING = ('nova-conductor', *(hosts[0] for hosts in worlds.GROUPS.values()))
# A process of Python grows by what it has had at once.
_MOST_MEMORY = 1.3
_MOST_THREADS = 10


@dataclasses.dataclass(frozen=True)
class Size:
    """What a service takes.

    :ivar memory: in MiB
    :ivar threads: how many
    """

    memory: int
    threads: int


def sizes(lab: cloud.Lab) -> dict[str, Size]:
    """Return what each service that lasts takes.

    :param lab: the lab
    """
    found = {}
    for name in LASTING:
        process = lab.state.process(name)
        found[name] = Size(process.memory() >> 20, process.threads())
    return found


def complaints(samples: Sequence[dict[str, Size]]) -> list[str]:
    """Say which services have grown since they were warm.

    :param samples: their sizes, in the order of time
    """
    if len(samples) < 4:
        return []
    warm, last = samples[len(samples) // 4], samples[-1]
    said = []
    for name, size in last.items():
        before = warm[name]
        if size.memory > before.memory * _MOST_MEMORY:
            said.append(f'{name} has grown from {before.memory} to '
                        f'{size.memory} MiB')
        if size.threads > before.threads + _MOST_THREADS:
            said.append(f'{name} has {size.threads} threads and had '
                        f'{before.threads}')
    return said
