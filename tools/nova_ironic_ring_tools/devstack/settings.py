# SPDX-License-Identifier: Apache-2.0

"""The settings of a devstack in a container."""

from collections.abc import Mapping
import dataclasses
import pathlib
import re

from nova_ironic_ring_tools.devstack import errors

#: The drivers of Nova, by the names that the command line has for them.
DRIVERS = {'ring': 'ironic_ring.IronicRingDriver',
           'pool': 'ironic_ring.IronicPoolDriver'}
DIRECTORY = pathlib.Path('/var/lib/nova-ironic-ring-devstack')

_GIT_BASE = 'https://opendev.org'
_MIRROR = 'http://deb.debian.org/debian'
_GROUP = re.compile(r'(?P<name>[\w.-]*):(?P<count>[1-9]\d*)')


@dataclasses.dataclass(frozen=True)
class Sources:
    """Where everything is fetched from.

    :ivar git_base: the address, or the directory, that has openstack/NAME
    :ivar branch: the branch of devstack and of all projects
    :ivar mirror: the address of Debian's packages
    :ivar pip: the environment variables that pip reads, with their values
    """

    git_base: str = _GIT_BASE
    branch: str = 'stable/2026.1'
    mirror: str = _MIRROR
    pip: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def folder(self) -> pathlib.Path | None:
        """The directory that has the repositories; None for an address."""
        if '://' in self.git_base:
            return None
        return pathlib.Path(self.git_base)


@dataclasses.dataclass(frozen=True)
class Cloud:
    """What runs in the container.

    :ivar driver: ``ring`` or ``pool``
    :ivar computes: how many nova-computes
    :ivar nodes: how many nodes
    :ivar groups: how many of the nova-computes each conductor group has, by
        its name; empty if they are in none
    """

    driver: str = 'ring'
    computes: int = 3
    nodes: int = 9
    groups: Mapping[str, int] = dataclasses.field(default_factory=dict)


def sources(environment: Mapping[str, str]) -> Sources:
    """Read from the environment where everything is fetched from.

    :param environment: its variables
    """
    named = {'git_base': environment.get('GIT_BASE'),
             'branch': environment.get('DEVSTACK_BRANCH'),
             'mirror': environment.get('DEBIAN_MIRROR')}
    return Sources(
        pip={name: value for name, value in environment.items()
             if name in ('PIP_INDEX_URL', 'PIP_EXTRA_INDEX_URL',
                         'PIP_TRUSTED_HOST', 'PIP_DEFAULT_TIMEOUT')},
        **{name: value for name, value in named.items() if value})


def groups(text: str) -> dict[str, int]:
    """Read conductor groups, such as ``":2 rack-b:1"``.

    :param text: groups and numbers of services
    :returns: the number of services of each group, by its name
    :raises DevstackError: if the text has another form
    """
    found: dict[str, int] = {}
    for word in text.split():
        group = _GROUP.fullmatch(word)
        if not group or group['name'] in found:
            raise errors.DevstackError(
                f'The groups "{text}" are wrong at "{word}": give each group '
                'once, with a number of services, such as ":2 rack-b:1".')
        found[group['name']] = int(group['count'])
    return found
