# SPDX-License-Identifier: Apache-2.0

"""Says who runs the command."""

from collections.abc import Mapping, Sequence
import getpass
import os
import shlex
import socket

from nova_ironic_ring.core.deciding import audit

# Characters of a command that are written down, with each thing that it does:
# the nodes of a move may be thousands, and Nova keeps 64 kB of each.
_MOST = 1000


def find(arguments: Sequence[str],
         environment: Mapping[str, str] = os.environ) -> audit.Author:
    """Say who runs the command.

    :param arguments: what was typed behind its name
    :param environment: the environment
    """
    cloud = environment.get('OS_CLOUD')
    return audit.Author(
        _user(environment), socket.gethostname(),
        environment.get('OS_USERNAME') or (
            f'cloud {cloud}' if cloud else None),
        _cut(shlex.join(arguments)))


def _cut(typed: str) -> str:
    return typed if len(typed) <= _MOST else typed[:_MOST - 4] + ' ...'


def _user(environment: Mapping[str, str]) -> str:
    """Return the name of the user, and of who has become that by sudo."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # In a container, the user may have no name.
        user = str(os.getuid())
    before = environment.get('SUDO_USER')
    return f'{before} as {user}' if before and before != user else user
