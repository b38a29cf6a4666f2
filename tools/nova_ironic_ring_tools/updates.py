# SPDX-License-Identifier: Apache-2.0

"""The argument for how often Nova's tracker updates an unchanged node."""

import argparse

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.lab.running import services

_OPTION = conf.full_update_interval_opt


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Have a program take the argument.

    :param parser: the parser of the program; the argument that it reads is
        ``full_update_interval``, in seconds
    """
    parser.add_argument(
        '--full-update-interval', type=_seconds, metavar='N',
        default=_OPTION.default,
        help=f'[ironic_ring] {_OPTION.name} of each service, in seconds, '
        'which the pool driver ignores (default: %(default)s)')


def options(interval: int) -> services.Sections:
    """Return the options for nova.conf.

    :param interval: the argument, in seconds
    """
    return {'ironic_ring': {_OPTION.name: interval}}


def headline(interval: int) -> str:
    """Return the part of a headline that names the argument.

    :param interval: the argument, in seconds
    """
    return f'{_OPTION.name} {interval} s'


def _seconds(text: str) -> int:
    """Read a number of seconds, which is not negative."""
    seconds = int(text)
    if seconds < 0:
        raise argparse.ArgumentTypeError(f'{seconds} is negative')
    return seconds
