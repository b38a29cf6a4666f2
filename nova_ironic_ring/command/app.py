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

"""The command line for the controller.

It reads nova.conf as nova-manage does: the databases of the cells, and Ironic
with Nova's own account.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
import contextlib
import logging
import sys
import time
from typing import Any

from cliff import app
from cliff import command
from cliff import commandmanager
from cliff import lister
from cliff import show as cliff_show
import nova.conf
from nova import config

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.command import checks
from nova_ironic_ring.command import decisions
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import overview
from nova_ironic_ring.command import picture
from nova_ironic_ring.command import planning
from nova_ironic_ring.command import prospect
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.command import source
from nova_ironic_ring.command import upgrade
from nova_ironic_ring.command import work

CONF = nova.conf.CONF

#: Exit statuses: done, something to look at, could not.
DONE, LOOK, FAILED = 0, 1, 2

_CLEAR_SCREEN = '\033[H\033[2J'
_WATCH_INTERVAL = 2


class _Ring:
    """What the commands share."""

    app: 'RingApp'

    @property
    def source(self) -> source.Source:
        """The deployment."""
        return source.Source(self.app.options.cell)

    @property
    def worker(self) -> work.Worker:
        """What changes the deployment."""
        return work.Worker(self.source, self.say, self.progress)

    def say(self, line: str) -> None:
        """Print a line at once, where it is in no table's way."""
        print(line, file=self.app.stderr, flush=True)

    def progress(self, line: str) -> None:
        """Print a line over the last one, on a terminal."""
        if self.app.stderr.isatty():
            # The cursor is back where it was: up, and the line cleared.
            up = '\033[F\033[K' if self._is_over else ''
            line, self._is_over = up + line, True
        self.say(line)

    _is_over = False

    def ask(self, parsed_args: argparse.Namespace,
            steps: Sequence[str]) -> bool:
        """Show what is to be done, and ask whether to do it.

        :param parsed_args: with ``dry_run`` and ``yes``
        :param steps: a line for each change
        :returns: whether to go on
        :raises CommandError: if there is nobody to ask
        """
        for step in steps:
            self.say(f'* {step}')
        if not steps:
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


class _Changing(_Ring, command.Command):
    """A command that changes something."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--dry-run', action='store_true',
                            help='show what would be done, and do nothing')
        parser.add_argument('--yes', action='store_true',
                            help='do it without asking')
        return parser


def _waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--timeout', type=int, default=600, metavar='SECONDS',
        help='how long to wait for the services (default: 600)')


class Show(_Ring, lister.Lister):
    """Show the services, what they are to the ring, and what they have.

    Free nodes that are with another service than the ring maps them to are
    "to hand over"; instances of services that are down, as Nova's API has it,
    or gone are "to fail over".
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--watch', action='store_true',
                            help='show it anew every two seconds, until '
                                 'Ctrl-C')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        with contextlib.suppress(KeyboardInterrupt):
            while parsed_args.watch:
                self.app.stdout.write(_CLEAR_SCREEN)
                super().run(parsed_args)
                self.app.stdout.flush()
                time.sleep(_WATCH_INTERVAL)
        return DONE if parsed_args.watch else super().run(parsed_args)

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        return (('Ring', 'Host', 'State', 'Nodes', 'Desired', 'To hand over',
                 'Instances', 'To fail over'),
                [(line.ring, line.host, line.state, line.owned, line.desired,
                  line.to_hand_over, line.instances, line.to_fail_over)
                 for line in overview.lines(self.source.read())])


class NodeShow(_Ring, cliff_show.ShowOne):
    """Show whose a node is, whose it should be, and what is done about it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('node', metavar='NODE',
                            help='its name or UUID, or the beginning of it')
        return parser

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Sequence[object]]:
        seen = self.source.read()
        told = decisions.explain(seen, seen.find(parsed_args.node))
        return tuple(told), tuple(told.values())


class Plan(_Ring, lister.Lister):
    """Show what a change of the ring would move, before it is made.

    All services of the ring run their passes on a copy in memory, until
    nothing moves; without a change, this shows what is still to come. The
    nodes are the free ones. How many change hands is printed to the standard
    error.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--add', action='append', default=[],
                            metavar='HOST',
                            help='a service that joins, or returns')
        parser.add_argument('--remove', action='append', default=[],
                            metavar='HOST',
                            help='a service that leaves for good, or dies')
        parser.add_argument('--disable', action='append', default=[],
                            metavar='HOST',
                            help='a service that is disabled, or drained')
        parser.add_argument('--partitions', type=int, metavar='N',
                            help='points on the ring for each member')
        parser.add_argument(
            '--group', metavar='NAME',
            help='the conductor group whose ring it is, where there is more '
                 'than one ring')
        parser.add_argument('--shard', metavar='NAME', help='likewise')
        parser.add_argument('--svg', metavar='FILE',
                            help='draw it, as bars, into this file as well')
        return parser

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        if parsed_args.partitions is not None and parsed_args.partitions < 1:
            raise errors.CommandError('--partitions has to be 1 at least.')
        seen = self.source.read()
        plan = planning.plan(
            seen, _choose(seen, parsed_args.group, parsed_args.shard),
            prospect.Change(
                frozenset(parsed_args.add), frozenset(parsed_args.remove),
                frozenset(parsed_args.disable), parsed_args.partitions))
        if parsed_args.svg:
            try:
                with open(parsed_args.svg, 'w', encoding='utf-8') as file:
                    file.write(picture.svg(plan))
            except OSError as error:
                raise errors.CommandError(
                    f'"{parsed_args.svg}" cannot be written '
                    f'({error.strerror}): choose another file.') from error
        self.say(f'{plan.moved_nodes} free nodes and {plan.moved_instances} '
                 'instances change hands. Largest share over the mean: '
                 f'{plan.balance:.2f}, then {plan.balance_after:.2f}.')
        if not plan.is_settled:
            self.say('This does not come to an end: the services disagree. '
                     'See "nova-ironic-ring check".')
        return (('Host', 'Nodes', 'Nodes after', 'Instances',
                 'Instances after'),
                [(share.host, share.nodes, share.nodes_after, share.instances,
                  share.instances_after) for share in plan.shares])


def _choose(seen: snapshot.Snapshot, group: str | None,
            shard: str | None) -> snapshot.Key:
    """Find the ring that is meant.

    :raises CommandError: if there is none, or more than one
    """
    found = [key for key in seen.keys() if seen.is_meant(key.cell)
             and (group is None or key.group == group.lower())
             and (shard is None or key.shard == shard)]
    if not found:
        raise errors.CommandError(
            'There is no such ring: "nova-ironic-ring show" has those that '
            'there are.')
    if len(found) > 1:
        raise errors.CommandError(
            'There is more than one such ring '
            f'({"; ".join(map(str, found))}): choose one with --cell, --group '
            'and --shard.')
    return found[0]


class Check(_Ring, lister.Lister):
    """Find misconfiguration and leftovers, and say what to do about each.

    Exits with 1 if there is something to look at.
    """

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        found = checks.find(self.source.read(providers=True))
        self.app.status = LOOK if found else DONE
        if not found:
            self.say('All is well.')
        return (('Check', 'Subject', 'Found', 'To do'),
                [(finding.kind, finding.subject, finding.what, finding.advice)
                 for finding in found])


class UpgradeCheck(_Ring, command.Command):
    """Run the checks of "check" as all OpenStack's upgrade checks are.

    Exits with 0 if all is well, 1 if there is something to look at, 2 if that
    has to be mended first.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        return int(upgrade.UpgradeChecks(
            self.source.read(providers=True)).check())


class Drain(_Changing):
    """Disable a service, and wait until the others have its free nodes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='HOST')
        parser.add_argument('--reason', metavar='TEXT',
                            default='drained with nova-ironic-ring',
                            help='why, for those who see it disabled')
        parser.add_argument(
            '--instances', action='store_true',
            help='wait for its instances as well; they go if [ironic_ring] '
                 'instance_mobility is follow')
        _waiting(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        worker = self.worker
        if not self.ask(parsed_args, worker.plan_drain(
                parsed_args.host, parsed_args.instances)):
            return DONE
        return DONE if worker.drain(
            parsed_args.host, parsed_args.reason, parsed_args.instances,
            parsed_args.timeout) else LOOK


class Undrain(_Changing):
    """Enable a service, and wait until it has its share of free nodes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='HOST')
        _waiting(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        worker = self.worker
        if not self.ask(parsed_args, worker.plan_undrain(parsed_args.host)):
            return DONE
        return DONE if worker.undrain(
            parsed_args.host, parsed_args.timeout) else LOOK


class Failover(_Changing):
    """Force a service down, and wait until the others have its instances.

    See that it is dead first: stop it, or fence its host.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('host', metavar='HOST')
        parser.add_argument(
            '--alive', action='store_true',
            help='also if it looks alive, as one that has just died does')
        _waiting(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        worker = self.worker
        if not self.ask(parsed_args, worker.plan_failover(
                parsed_args.host, parsed_args.alive)):
            return DONE
        return DONE if worker.failover(
            parsed_args.host, parsed_args.timeout) else LOOK


class Move(_Changing):
    """Give the instance on a node, and so the node, to another service.

    Free nodes are where the ring maps them, and cannot be moved.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('node', metavar='NODE',
                            help='its name or UUID, or the beginning of it')
        parser.add_argument('host', metavar='HOST')
        _waiting(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        worker = self.worker
        if not self.ask(parsed_args, worker.plan_move(
                parsed_args.node, parsed_args.host)):
            return DONE
        return DONE if worker.move(
            parsed_args.node, parsed_args.host, parsed_args.timeout) else LOOK


class Clean(_Changing):
    """Remove leftovers of one kind that "check" has found.

    Nothing of a node that exists in Ironic is ever removed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'kind', choices=['rows', 'providers'],
            help='records in Nova, with their resource providers; or '
                 'resource providers without a record')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        worker = self.worker
        leftovers = worker.leftovers(parsed_args.kind)
        if not self.ask(parsed_args, [
                f'delete the {parsed_args.kind[:-1]} of node {node}'
                for node in leftovers]):
            return DONE
        return DONE if worker.clean(parsed_args.kind, leftovers) else LOOK


class RingApp(app.App):
    """The command line as a whole."""

    NAME = 'nova-ironic-ring'

    def __init__(self, **streams: Any) -> None:
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        #: What a command wants to exit with that has not failed.
        self.status = DONE
        super().__init__(
            'Shows and tends the ring of nova-computes that share an Ironic. '
            'Exits with 0 if it is done, 1 if there is something to look at, '
            '2 if it could not.', version='', command_manager=manager,
            deferred_help=True, **streams)

    def build_option_parser(
            self, description: str | None, version: str | None,
            argparse_kwargs: dict | None = None) -> argparse.ArgumentParser:
        parser = super().build_option_parser(
            description, version, argparse_kwargs)
        parser.add_argument(
            '--config-file', action='append', default=[], metavar='PATH',
            help='as for nova-manage; more than once for several')
        parser.add_argument('--config-dir', metavar='PATH',
                            help='as for nova-manage')
        parser.add_argument(
            '--cell', metavar='NAME',
            help='the name or UUID of the only cell that is meant (default: '
                 'all)')
        return parser

    def configure_logging(self) -> None:
        super().configure_logging()
        # What the libraries have to say is for those who ask for it.
        if self.options.verbose_level < 2 and not self.options.debug:
            logging.getLogger().setLevel(logging.ERROR)
            logging.getLogger('nova').setLevel(logging.CRITICAL)

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        if isinstance(cmd, _Ring):
            configure(self.options.config_file, self.options.config_dir)

    def clean_up(self, cmd: command.Command, result: int,
                 err: BaseException | None) -> None:
        super().clean_up(cmd, result, err)
        if err is not None:
            self.status = FAILED

    def run(self, argv: list[str]) -> int:
        # Cliff's own status of a failure would be that of a finding.
        result = super().run(argv)
        return self.status or result


def configure(files: Sequence[str], directory: str | None,
              parse: Callable[..., None] = config.parse_args) -> None:
    """Read nova.conf.

    :param files: its files; empty for where Nova looks by itself
    :param directory: a directory of more files; None for where Nova looks
    :param parse: Nova's own, which does it
    :raises CommandError: if they cannot be read
    """
    arguments = ['nova-ironic-ring']
    for file in files:
        arguments += ['--config-file', file]
    if directory:
        arguments += ['--config-dir', directory]
    try:
        parse(arguments)
    except (SystemExit, Exception) as error:
        raise errors.CommandError(
            f'nova.conf cannot be read: {error}. Give its files with '
            '--config-file, as to nova-manage.') from error
    conf.register_opts(CONF)


def main() -> int:
    """Run the command line.

    :returns: the exit status
    """
    return RingApp().run(sys.argv[1:] or ['--help'])
