# SPDX-License-Identifier: Apache-2.0

"""Records what a command does, and who has run it.

A record that cannot be written makes no step fail.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
import getpass
import logging
import os
import shlex
import socket
import sys
from typing import TypeAlias

import nova.conf
from nova import context as nova_context
from oslo_log import log as oslo_logging
from oslo_utils import timeutils

from nova_ironic_ring.adapters import background
from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.adapters.trail import audit
from nova_ironic_ring.core.deciding import audit as core_audit

CONF = nova.conf.CONF

#: Seconds that the command waits at its end for its notifications to be sent.
PATIENCE = 5
_PUBLISHER = 'nova-ironic-ring'
# The length of a reason in Nova.
_MOST = 255
# The recorded length of a command line. It is recorded with each action: a
# move may name thousands of nodes, and Nova keeps 64 kB of each.
_LONGEST_COMMAND = 1000

Code = core_audit.Code
_Write: TypeAlias = Callable[
    [nova_context.RequestContext, core_audit.Entry], None]


class Trail:
    """The records of one command."""

    def __init__(self, author: core_audit.Author, reason: str | None,
                 say: Callable[[str], object]) -> None:
        """Begin with nothing.

        :param author: who runs the command
        :param reason: the reason, if one was given
        :param say: prints a line for people
        """
        self.author = author
        self.reason = reason
        self._say = say
        self._background = background.Background()

    def begin(self) -> None:
        """Write that the command begins to change something."""
        try:
            _log_as_nova()
        except Exception as error:
            self._say(f'What is done cannot be logged where nova.conf has '
                      f'logs go ({error}): it is logged here.')
        self.write(Code.COMMAND_BEGUN)

    def end(self, result: str) -> None:
        """Write the result of the command.

        :param result: its code
        """
        self.write(Code.COMMAND_ENDED, target=result)
        self._background.wait(PATIENCE)

    def write(self, code: Code, **fields: str | None) -> core_audit.Entry:
        """Write that something was done.

        :param code: what
        :param fields: as
            :class:`~nova_ironic_ring.core.deciding.audit.Entry` has them
        :returns: what was written
        """
        entry = self._entry(code, **fields)
        self._background.do(functools.partial(
            audit.notify, audit.write(entry), _PUBLISHER))
        return entry

    def moved(self, context: nova_context.RequestContext, **fields: str
              ) -> None:
        """Write that an instance is with another service.

        :param context: the context of the cell
        :param fields: as above
        """
        entry = self.write(Code.INSTANCE_MOVED, **fields)
        self._record(functools.partial(
            actions.record, at=timeutils.utcnow()), context, entry)

    def asked(self, context: nova_context.RequestContext, instance: str,
              host: str) -> None:
        """Write that the failover of an instance is asked for.

        :param context: the context of the cell
        :param instance: its UUID
        :param host: the name of the service that it belongs to
        """
        self._record(actions.ask, context, self._entry(
            Code.SERVICE_FORCED_DOWN, service=host, instance=instance,
            source=host))

    def signed(self, reason: str) -> str:
        """Add the user to a reason, in the length that Nova takes.

        :param reason: the reason
        """
        signature = f' (by {self.author})'[:_MOST]
        return reason[:_MOST - len(signature)] + signature

    def _entry(self, code: Code, **fields: str | None) -> core_audit.Entry:
        return core_audit.Entry(
            code, self.author.host,
            **{'reason': self.reason, **fields},
            author=self.author)

    def _record(self, write: _Write, context: nova_context.RequestContext,
                entry: core_audit.Entry) -> None:
        try:
            write(context, entry)
        except Exception as error:
            self._say(f'The history of instance {entry.instance} in Nova '
                      f'lacks this: {error}')


def _log_as_nova() -> None:
    """Write the lines as nova.conf configures logs.

    The root logger stays as it is, so that errors go to the terminal.

    :raises Exception: if that fails, for example without access
    """
    root, lines = logging.getLogger(), logging.getLogger(audit.LOGGER)
    kept, level, hook = list(root.handlers), root.level, sys.excepthook
    found: list[logging.Handler] = [logging.StreamHandler()]
    try:
        oslo_logging.setup(CONF, 'nova')
        found = _beside_the_output(_handlers(lines))
    finally:
        root.handlers[:] = kept
        root.setLevel(level)
        sys.excepthook = hook
        lines.handlers[:] = found
        lines.setLevel(logging.INFO)
        lines.propagate = False


def _beside_the_output(found: list[logging.Handler]
                       ) -> list[logging.Handler]:
    """Keep the lines off the standard output, which has the result.

    oslo.log writes there if nova.conf names no file. On a terminal they would
    interrupt the output.
    """
    others = [each for each in found
              if getattr(each, 'stream', None) is not sys.stdout]
    if others or sys.stderr.isatty():
        return others
    return [logging.StreamHandler()]


def _handlers(logger: logging.Logger) -> list[logging.Handler]:
    """Name the handlers of a logger."""
    above = logger.parent if logger.propagate else None
    return list(logger.handlers) + (_handlers(above) if above else [])


def find_author(arguments: Sequence[str],
                environment: Mapping[str, str] = os.environ
                ) -> core_audit.Author:
    """Describe who runs the command.

    :param arguments: the arguments of the command line
    :param environment: the environment
    """
    cloud = environment.get('OS_CLOUD')
    return core_audit.Author(
        _user(environment), socket.gethostname(),
        environment.get('OS_USERNAME') or (
            f'cloud {cloud}' if cloud else None),
        _cut(shlex.join(arguments)))


def _cut(typed: str) -> str:
    return (typed if len(typed) <= _LONGEST_COMMAND
            else typed[:_LONGEST_COMMAND - 4] + ' ...')


def _user(environment: Mapping[str, str]) -> str:
    """Return the name of the user, and of the user who has run sudo."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # In a container, the user may have no name.
        user = str(os.getuid())
    before = environment.get('SUDO_USER')
    return f'{before} as {user}' if before and before != user else user
