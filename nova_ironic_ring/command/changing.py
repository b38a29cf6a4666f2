# SPDX-License-Identifier: Apache-2.0

"""The commands that change something, and wait until it is done."""

import abc
import argparse
from collections.abc import Iterable, Sequence
import functools
from typing import TYPE_CHECKING

from cliff import lister

from nova_ironic_ring.command.access import errors
from nova_ironic_ring.command import app
from nova_ironic_ring.command import cleaning
from nova_ironic_ring.command import moving
from nova_ironic_ring.command import sharder
from nova_ironic_ring.command import steps
from nova_ironic_ring.command import work
from nova_ironic_ring.core.deciding import sharding

if TYPE_CHECKING:
    from nova_ironic_ring.command import trail as trails


_REASON = 'the reason, for the history'


class _Changing(app.Codes, lister.Lister):
    """A command that changes something, and lists its steps."""

    codes = ('Action', 'Subject', 'Result code', 'Error')
    _COLUMNS = ('Step', 'Result', *codes)
    #: The reason, if one was given.
    reason: str | None = None

    @functools.cached_property
    def trail(self) -> 'trails.Trail':
        """The records of what the command does."""
        # Only a command that changes something has to import Nova's objects.
        from nova_ironic_ring.command.access import writing
        from nova_ironic_ring.command import trail as trails
        writing.set_up()
        return trails.Trail(
            trails.find_author(self.app.arguments), self.reason, self.say)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--dry-run', action='store_true',
                            help='show the steps, and change nothing')
        parser.add_argument('--yes', action='store_true',
                            help='do not ask')
        return parser

    @abc.abstractmethod
    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        """Plan the steps.

        :raises ValueError: if something that is named does not exist
        :raises CommandError: if it cannot be done
        """

    @abc.abstractmethod
    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        """Do it."""

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        # Otherwise an unknown column would be reported only at the end.
        self._generate_columns_and_selector(parsed_args, self._COLUMNS)
        self.reason = getattr(parsed_args, 'reason', None)
        planned = self.plan(parsed_args)
        results: steps.StepResults = dict.fromkeys(planned, steps.NOT_DONE)
        if self._ask(parsed_args, planned):
            results = self._act(parsed_args, planned)
            self._tell(results)
        return self._COLUMNS, [
            (step.words, results[step].code.value, step.action.name,
             step.subject, results[step].code.name, results[step].error)
            for step in planned]

    def _act(self, parsed_args: argparse.Namespace,
             planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        """Take the steps, and record who has done so."""
        self.trail.begin()
        worst = steps.ResultCode.FAILED
        try:
            results = self.act(parsed_args, planned)
            worst = steps.worst(results)
        finally:
            self.trail.end(worst.name)
        return results

    def _ask(self, parsed_args: argparse.Namespace,
             planned: Sequence[steps.PlannedStep]) -> bool:
        """Show the steps, and ask whether to take them.

        :param parsed_args: with ``dry_run`` and ``yes``
        :param planned: the steps
        :returns: whether to take them
        :raises CommandError: if there is nobody to ask
        """
        for step in planned:
            self.say(f'* {step.words}')
        if not planned:
            self.say('There is nothing to do.')
            return False
        if parsed_args.dry_run or parsed_args.yes:
            return not parsed_args.dry_run
        if not self.app.stdin.isatty():
            raise errors.CommandError(
                'There is no terminal to ask on: add --yes to do it, or '
                '--dry-run to see no more than this.')
        self.app.stderr.write('Do it? [y/N] ')
        self.app.stderr.flush()
        answer = self.app.stdin.readline().strip().lower()
        return answer in ('y', 'yes')

    def _tell(self, results: steps.StepResults) -> None:
        """Print what has failed, and choose the exit status."""
        for result in results.values():
            if result.error:
                self.say(result.error)
        worst = steps.worst(results)
        if worst is steps.ResultCode.FAILED:
            self.app.status = app.FAILED
        elif worst is not steps.ResultCode.DONE:
            self.app.status = app.LOOK


class _Waiting(_Changing):
    """A command that waits until the services have followed a change."""

    @property
    def waiter(self) -> steps.Waiter:
        """What waits for the services of the deployment."""
        return steps.Waiter(self.source, self.console)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--timeout', type=int, default=600, metavar='SECONDS',
            help='how long to wait for the services (default: 600)')
        return parser


class _Tending(_Waiting):
    """A command that changes the record of a service."""

    @functools.cached_property
    def worker(self) -> work.Worker:
        """What changes it."""
        return work.Worker(
            self.source, self.see, self.waiter, lambda: self.trail)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='HOST')
        return parser


class Drain(_Tending):
    """Disable a service, and wait until the others have its free nodes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--reason', metavar='TEXT',
                            default='drained with nova-ironic-ring',
                            help='the reason, shown with the service')
        parser.add_argument(
            '--instances', action='store_true',
            help='wait for its instances as well; they go if [ironic_ring] '
                 'instance_mobility is follow')
        return parser

    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        return self.worker.plan_drain(parsed_args.host, parsed_args.instances)

    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        return self.worker.drain(
            planned, parsed_args.reason, parsed_args.timeout)


class Undrain(_Tending):
    """Enable a service, and wait until it has its share of free nodes."""

    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        return self.worker.plan_undrain(parsed_args.host)

    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        return self.worker.undrain(planned, parsed_args.timeout)


class Failover(_Tending):
    """Force a service down, and wait until the others have its instances.

    Make sure first that it has ended: stop it, or fence its host.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--alive', action='store_true',
            help='even if it looks alive, as if it has just died')
        parser.add_argument('--reason', metavar='TEXT', help=_REASON)
        return parser

    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        return self.worker.plan_failover(parsed_args.host, parsed_args.alive)

    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        results = self.worker.failover(planned, parsed_args.timeout)
        host = planned[0].subject
        self.say(f'When {host} is well again: "openstack compute service set '
                 f'--up {host} nova-compute".')
        return results


class Move(_Waiting):
    """Give the instances on nodes, and so the nodes, to another service.

    Free nodes are where the ring maps them, and cannot be moved. If one of
    several nodes cannot be moved, none is.
    """

    @functools.cached_property
    def mover(self) -> moving.Mover:
        """What moves it."""
        return moving.Mover(
            self.source, self.see, self.waiter, lambda: self.trail)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('nodes', nargs='+', metavar='NODE', help=app.NODE)
        parser.add_argument('host', metavar='HOST')
        parser.add_argument('--reason', metavar='TEXT', help=_REASON)
        return parser

    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        return self.mover.plan(parsed_args.nodes, parsed_args.host)

    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        return self.mover.move(planned, parsed_args.host, parsed_args.timeout)


class Shard(_Changing):
    """Divide the nodes without a shard evenly into shards in Ironic.

    Nodes that have a shard keep it. After more nodes were enrolled, run this
    again to fill the same shards evenly.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        sharder.add_options(parser)
        parser.add_argument(
            '--group', metavar='NAME',
            help='only the nodes of this conductor group; "" for those of '
                 'none')
        parser.add_argument(
            '--clear', action='store_true',
            help='take the nodes out of the shards with these names instead')
        parser.add_argument(
            '--os-cloud', metavar='NAME',
            help='the cloud in clouds.yaml whose account changes the nodes; '
                 '"envvars" for OS_USERNAME and so on (default: Nova\'s own '
                 'account, which Ironic seldom lets do that)')
        parser.add_argument('--reason', metavar='TEXT', help=_REASON)
        return parser

    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        if parsed_args.clear and parsed_args.shards is not None:
            raise errors.CommandError(
                '--clear takes the nodes out of all shards with these names: '
                'leave out --shards.')
        self.sharder = sharder.Sharder(
            self.source, self.console, lambda: self.trail, sharder.Division(
                sharding.Names(parsed_args.prefix), parsed_args.shards,
                parsed_args.group, parsed_args.os_cloud))
        seen = self.see(self.source.read())
        return (self.sharder.plan_clear(seen) if parsed_args.clear
                else self.sharder.plan(seen))

    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        return self.sharder.change(planned)


class Clean(_Changing):
    """Remove leftovers of one kind that "check" has found.

    Nothing that belongs to a node in Ironic is ever removed.
    """

    @functools.cached_property
    def cleaner(self) -> cleaning.Cleaner:
        """What removes them."""
        return cleaning.Cleaner(self.source, lambda: self.trail)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'kind', choices=['rows', 'providers'],
            help='records in Nova, with their resource providers; or '
                 'resource providers without a record')
        return parser

    def plan(self, parsed_args: argparse.Namespace) -> list[steps.PlannedStep]:
        return self.cleaner.plan(parsed_args.kind)

    def act(self, parsed_args: argparse.Namespace,
            planned: Sequence[steps.PlannedStep]) -> steps.StepResults:
        return self.cleaner.clean(planned)
