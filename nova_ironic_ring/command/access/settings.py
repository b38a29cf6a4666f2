# SPDX-License-Identifier: Apache-2.0

"""Reads nova.conf, as nova-manage does."""

from collections.abc import Callable, Sequence

import nova.conf
from oslo_log import log

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.command.access import errors

CONF = nova.conf.CONF

#: Reads nova.conf.
_arguments: list[str] = []


def configure(files: Sequence[str], directory: str | None) -> None:
    """Read nova.conf.

    :param files: its files; empty for where Nova looks by itself
    :param directory: a directory of more files; None for where Nova looks
    :raises CommandError: if they cannot be read
    """
    _arguments[:] = ['nova-ironic-ring']
    for file in files:
        _arguments.extend(('--config-file', file))
    if directory:
        _arguments.extend(('--config-dir', directory))
    parse(_parse)


def parse(how: Callable[[list[str]], None]) -> None:
    """Read nova.conf once more.

    :param how: the function that reads; Nova's own also connects to its
        databases and its message queue
    :raises CommandError: if it cannot be read
    """
    # Otherwise options that exist only on the command line cannot be
    # registered again.
    CONF.clear()
    try:
        how(list(_arguments))
    except (SystemExit, Exception) as error:
        raise errors.CommandError(
            f'nova.conf cannot be read: {error}. Give its files with '
            '--config-file, as to nova-manage.') from error
    conf.register_opts(CONF)


def _parse(arguments: list[str]) -> None:
    """Find the files as Nova does, and do nothing else."""
    log.register_options(CONF)
    CONF(arguments[1:], project='nova')
