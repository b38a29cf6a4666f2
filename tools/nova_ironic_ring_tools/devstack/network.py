# SPDX-License-Identifier: Apache-2.0

"""The network of the container: a namespace, with this machine as its router.

So devstack neither takes a port of this machine nor changes its network.
"""

import contextlib
import pathlib

from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import errors

NAME = 'ironic-ring'
#: The address of the container.
ADDRESS = '10.255.77.2'

_GATEWAY = '10.255.77.1'
_PREFIX = 30
# The ends of the virtual cable. The name of an interface must be short.
_OUTSIDE = 'ironic-ring'
_INSIDE = 'host0'
_FORWARDING = pathlib.Path('/proc/sys/net/ipv4/ip_forward')


def path() -> pathlib.Path:
    """Return the file of the namespace."""
    return pathlib.Path('/run/netns', NAME)


def up(before: pathlib.Path) -> None:
    """Make the namespace, unless there is one.

    :param before: a file for the setting of the machine that this changes
    :raises DevstackError: if the namespace cannot be made, or is another's
    """
    if path().exists():
        if before.exists():
            return
        raise errors.DevstackError(
            f'The network namespace {NAME} is there already: end the other '
            'devstack with "down", or remove the namespace with "ip netns '
            f'delete {NAME}".')
    try:
        before.write_text(_FORWARDING.read_text())
        commands.run('ip', 'netns', 'add', NAME)
        commands.run('ip', 'link', 'add', _OUTSIDE, 'type', 'veth',
                     'peer', 'name', _INSIDE, 'netns', NAME)
        _give(_GATEWAY, _OUTSIDE)
        _give(ADDRESS, _INSIDE, '-n', NAME)
        commands.run('ip', '-n', NAME, 'link', 'set', 'lo', 'up')
        commands.run('ip', '-n', NAME, 'route', 'add', 'default', 'via',
                     _GATEWAY)
        commands.run('nft', 'add', 'table', 'ip', NAME)
        commands.run('nft', 'add', 'chain', 'ip', NAME, 'out',
                     '{ type nat hook postrouting priority srcnat; }')
        commands.run('nft', 'add', 'rule', 'ip', NAME, 'out', 'ip', 'saddr',
                     ADDRESS, 'oifname', '!=', _OUTSIDE, 'masquerade')
        _FORWARDING.write_text('1\n')
    except (errors.DevstackError, OSError):
        down(before)
        raise


def _give(address: str, interface: str, *where: str) -> None:
    """Give an interface its address."""
    commands.run('ip', *where, 'address', 'add', f'{address}/{_PREFIX}',
                 'dev', interface)
    commands.run('ip', *where, 'link', 'set', interface, 'up')


def down(before: pathlib.Path) -> None:
    """Remove what :func:`up` has made, or a part of it.

    :param before: the file that :func:`up` has written first; without it,
        nothing is removed
    """
    if not before.exists():
        return
    for argv in (('nft', 'delete', 'table', 'ip', NAME),
                 ('ip', 'link', 'delete', _OUTSIDE),
                 ('ip', 'netns', 'delete', NAME)):
        with contextlib.suppress(errors.DevstackError):
            commands.run(*argv)
    _FORWARDING.write_text(before.read_text())
    before.unlink()
