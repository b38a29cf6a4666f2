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

"""What a service says of itself, in the statistics of its nodes' rows.

The other services do not read it, for each goes by its own configuration; the
command compares it.
"""

from collections.abc import Mapping
import dataclasses
import hashlib
import json

from nova_ironic_ring import settings

# With a colon, as in records: the capabilities of a node are there as well.
_KEY = 'ironic_ring:profile'

# It is in the row of each node.
_MOST_NAMES = 50


@dataclasses.dataclass(frozen=True)
class Profile:
    """The configuration that services of one ring have to agree on.

    :ivar conductor_group: the group that the service is limited to; None if
        there is no limit
    :ivar shard: the shard that it is limited to, if any
    :ivar peers: a fingerprint of its peer list; None if every host may be a
        member
    :ivar names: the hosts of its peer list, unless they are very many
    :ivar partitions: points on the ring for each member
    :ivar handover: its rule of handing nodes over
    :ivar mobility: what it does with instances
    """

    conductor_group: str | None = None
    shard: str | None = None
    peers: str | None = None
    names: tuple[str, ...] = ()
    partitions: int = 32
    handover: str = 'cooperative'
    mobility: str = 'failover'


def of(current: settings.Settings) -> Profile:
    """Return the profile of a service.

    :param current: its settings
    """
    return Profile(
        current.conductor_group, current.shard,
        None if current.peers is None else fingerprint(*current.peers),
        tuple(sorted(current.peers or ())) if (
            len(current.peers or ()) <= _MOST_NAMES) else (),
        current.partitions,
        'cooperative' if current.cooperative else 'immediate',
        'follow' if current.follows
        else 'failover' if current.fails_over else 'pinned')


def fingerprint(*hosts: str) -> str:
    """Return some letters that stand for hosts, in any order.

    :param hosts: canonical host names
    """
    return hashlib.sha256(','.join(sorted(hosts)).encode()).hexdigest()[:12]


def publish(profile: Profile) -> dict[str, str]:
    """Return what says so in a node's statistics.

    :param profile: the profile of the node's owner
    """
    return {_KEY: json.dumps(dataclasses.asdict(profile), sort_keys=True)}


def read(stats: Mapping[str, str] | None) -> Profile | None:
    """Return what the owner of a node says of itself.

    :param stats: the node's statistics
    :returns: None if it says nothing, as Nova's own driver
    """
    try:
        found = json.loads((stats or {})[_KEY])
        known = {field.name: found[field.name]
                 for field in dataclasses.fields(Profile)
                 if field.name in found}
        return Profile(**known | {'names': tuple(known.get('names', ()))})
    except (KeyError, TypeError, ValueError):
        return None
