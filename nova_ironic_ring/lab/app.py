# SPDX-License-Identifier: Apache-2.0

"""The lab's command line."""

import argparse
from collections.abc import Callable, Sequence
from importlib import metadata
import os
import pathlib
import signal
import sys
import time
from typing import NoReturn

from cliff import app
from cliff import command
from cliff import commandmanager
from cliff import lister
import fixtures

from nova_ironic_ring.command import display
from nova_ironic_ring.core.values import plural
from nova_ironic_ring.lab import cloud
from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab import place
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import shapes
from nova_ironic_ring.lab import tenant

_DRIVERS = {'nova': lab_state.STOCK_DRIVER, 'pool': lab_state.POOL_DRIVER,
            'ring': lab_state.RING_DRIVER}
#: What cliff takes for a table: its columns and its lines.
_Rows = tuple[Sequence[str], Sequence[Sequence[object]]]

# Nova's own nova-compute waits this long, in seconds, for its work to end.
_STOP_TIMEOUT = 180

# The first words after "tools/lab ring" that the lab reads itself; all others
# are for nova-ironic-ring.
_LEFT_TO_THE_LAB = ('--', '-h', '--help')


def _number(least: int) -> Callable[[str], int]:
    """Return what reads an argument: an integer of at least ``least``."""
    def convert(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f'{text} is less than {least}')
        return number
    convert.__name__ = 'number'
    return convert


class _Lab:
    """What the commands share."""

    app: 'LabApp'

    @property
    def directory(self) -> pathlib.Path:
        """The directory of the lab that the options name."""
        return place.directory(self.app.options.name)

    def lab(self) -> cloud.Lab:
        """Return the lab that the options name, which must be up."""
        return cloud.Lab.load(self.directory)

    def say(self, line: str) -> None:
        """Print a line at once."""
        print(line, file=self.app.stdout, flush=True)


class _Table(_Lab, lister.Lister):
    """A command that prints the ring."""

    def ring(self, lab: cloud.Lab) -> _Rows:
        """Return the ring as cliff wants a table."""
        return (
            ('Member', 'State', 'Nodes owned', 'Nodes desired', 'Instances'),
            [(member.host, member.state, member.owned, member.desired,
              member.instances) for member in lab.ring()])


class Up(_Table):
    """Bring a cloud up on loopback: one Ironic, several nova-computes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--nodes', type=_number(0), default=30, metavar='N',
            help='nodes to enroll in Ironic (default: 30)')
        parser.add_argument(
            '--computes', type=_number(0), default=3, metavar='N',
            help='nova-computes to start (default: 3)')
        parser.add_argument(
            '--driver', choices=sorted(_DRIVERS), default='ring',
            help="one of this project's drivers, or Nova's own for comparison "
                 '(default: ring)')
        parser.add_argument(
            '--group', action='append', default=[], type=_group,
            metavar='NAME', dest='groups',
            help="one of Ironic's conductor groups, beside the default one; "
                 'more than once for several')
        parser.add_argument(
            '--volumes', action='store_true',
            help='with Cinder, and nodes that can boot its volumes')
        # Only for the help: tools/lab has read this option already, to choose
        # the virtual environment.
        parser.add_argument(
            '--nova', metavar='VERSION',
            help='the release of Nova, such as 33 (default: the newest)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> _Rows:
        start = time.monotonic()

        def progress(line: str) -> None:
            self.say(f'[{time.monotonic() - start:3.0f} s] {line}')

        fixture = cloud.Cloud(
            self.directory, driver=_DRIVERS[parsed_args.driver],
            computes=parsed_args.computes, node_count=parsed_args.nodes,
            groups=parsed_args.groups, volumes=parsed_args.volumes,
            progress=progress)
        # SIGTERM cleans up as well, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            fixture.setUp()
        except fixtures.MultipleExceptions as failure:
            if not self.directory.exists():
                raise errors.LabError(
                    'The lab was taken down while it came up.') from None
            raise _cause(failure)
        progress(f'The lab is up in {self.directory}.')
        return self.ring(fixture.lab)


def _cause(failure: BaseException) -> BaseException:
    """Return the first of the errors that made a fixture fail."""
    while isinstance(failure, fixtures.MultipleExceptions):
        failure = failure.args[0][1]
    return failure


class Down(_Lab, command.Command):
    """End all processes of the lab and remove its files."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if not self.directory.exists():
            raise errors.LabError(
                f'There is no lab in {self.directory}: there is nothing to '
                'end.')
        cloud.down(self.directory)
        self.say(f'The lab in {self.directory} is down.')


class Show(_Table, display.Watched):
    """Show the ring: who is in it, and which nodes each has."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--watch', type=_number(1), nargs='?', const=2, metavar='SECONDS',
            help='show it again and again (default: every 2 seconds)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.watch is None:
            return super().run(parsed_args)
        self.watch(parsed_args, parsed_args.watch)
        return 0

    def take_action(self, parsed_args: argparse.Namespace) -> _Rows:
        return self.ring(self.lab())


class _Computes(_Lab, command.Command):
    """A command that does something to nova-computes."""

    #: The states of a process in which the command makes sense.
    states: tuple[str, ...] = ('running', 'paused')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('names', nargs='+', metavar='NAME',
                            help='the nova-compute, such as compute-1')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        lab = self.lab()
        # Look up all names first: if one is wrong, nothing is done.
        found = [lab.compute(name) for name in parsed_args.names]
        for process in found:
            if process.state not in self.states:
                raise errors.LabError(
                    f'{process.name} is {process.state} already.')
        for name in parsed_args.names:
            self.act(lab, name)

    def act(self, lab: cloud.Lab, name: str) -> None:
        """Do to one nova-compute what the command says.

        :param lab: the lab
        :param name: the nova-compute's host name
        :raises LabError: if that fails
        """
        raise NotImplementedError


class Start(_Computes):
    """Start nova-computes that were stopped or killed."""

    states = ('stopped',)

    def act(self, lab: cloud.Lab, name: str) -> None:
        self.say(f'Starting {name}')
        lab.start_compute(name)


class Stop(_Computes):
    """Ask nova-computes to end, as systemd would, and wait for it."""

    def act(self, lab: cloud.Lab, name: str) -> None:
        self.say(f'Stopping {name}')
        lab.compute(name).stop(_STOP_TIMEOUT)


class Kill(_Computes):
    """Kill nova-computes, as a crash would."""

    def act(self, lab: cloud.Lab, name: str) -> None:
        lab.compute(name).kill()
        self.say(f'{name} is killed.')


class Pause(_Computes):
    """Freeze nova-computes, as a hang would."""

    states = ('running',)

    def act(self, lab: cloud.Lab, name: str) -> None:
        lab.compute(name).pause()
        self.say(f'{name} is paused.')


class Resume(_Computes):
    """Let frozen nova-computes continue."""

    states = ('paused',)

    def act(self, lab: cloud.Lab, name: str) -> None:
        lab.compute(name).resume()
        self.say(f'{name} goes on.')


class Reload(_Computes):
    """Let nova-computes read their configuration again, by SIGHUP."""

    def act(self, lab: cloud.Lab, name: str) -> None:
        lab.compute(name).reload()
        self.say(f'{name} reads its configuration again.')


class Report(_Computes):
    """Let nova-computes write Guru Meditation Reports into their logs."""

    def act(self, lab: cloud.Lab, name: str) -> None:
        lab.compute(name).report()
        self.say(f'{name} writes its report into {lab.compute(name).log}.')


class Add(_Lab, command.Command):
    """Start another nova-compute."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('name', nargs='?', metavar='NAME',
                            help='its host name (default: the next compute-N)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        lab = self.lab()
        name = parsed_args.name or lab.next_name()
        lab.add_compute(name)
        self.say(f'Starting {name}')
        lab.wait_alive(name)
        lab.discover_hosts()


class Enroll(_Lab, command.Command):
    """Add nodes to Ironic."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('count', type=_number(1), metavar='N',
                            help='how many')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        lab = self.lab()
        self.say(f'Enrolling {plural.of(parsed_args.count, "node")}')
        lab.enroll(parsed_args.count)


class Boot(_Lab, lister.Lister):
    """Boot servers, and wait until they are active."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('count', type=_number(1), nargs='?', default=1,
                            metavar='N', help='how many (default: 1)')
        parser.add_argument('--host', metavar='NAME',
                            help='the nova-compute that is to have them')
        parser.add_argument(
            '--flavor', choices=sorted(shapes.FLAVORS), default=tenant.FLAVOR,
            help=f'what they ask for (default: {tenant.FLAVOR})')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> _Rows:
        # The SDK takes long to import, and few commands need it.
        from nova_ironic_ring.lab import servers
        lab = self.lab()
        if parsed_args.host:
            state = lab.compute(parsed_args.host).state
            if state != 'running':
                raise errors.LabError(
                    f'{parsed_args.host} is {state} and cannot build servers.')
        connection = lab.connect()
        taken = {server.name for server in connection.compute.servers()}
        names = (f'server-{number}' for number in range(1, sys.maxsize)
                 if f'server-{number}' not in taken)
        asked = [servers.boot(connection, next(names), parsed_args.host,
                              flavor=parsed_args.flavor)
                 for _ in range(parsed_args.count)]
        self.say(f'Waiting for {", ".join(server.name for server in asked)}')
        booted, failures = [], []
        for server in asked:
            try:
                booted.append(servers.wait_active(connection, server))
            except errors.LabError as error:
                failures.append(str(error))
        if failures:
            raise errors.LabError(
                f'Of {plural.of(len(asked), "server")}, '
                + plural.of(len(failures), 'has', 'have') + ' not become '
                'active, and can be deleted ("delete --all" deletes every '
                f'server). {failures[0]}')
        return (('Server', 'Status', 'Host', 'Node'),
                [(server.name, server.status, server.compute_host,
                  server.hypervisor_hostname) for server in booted])


class Delete(_Lab, command.Command):
    """Delete servers, and wait until they are gone."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('names', nargs='*', metavar='NAME',
                            help='the server')
        parser.add_argument('--all', action='store_true', help='all of them')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if bool(parsed_args.names) == parsed_args.all:
            raise errors.LabError(
                'Nothing is deleted: give the names of servers, or --all.')
        from nova_ironic_ring.lab import servers
        connection = self.lab().connect()
        found = list(connection.compute.servers())
        if not parsed_args.all:
            missing = set(parsed_args.names) - {
                server.name for server in found}
            if missing:
                raise errors.LabError(
                    f'There is no server {", ".join(sorted(missing))}: '
                    'nothing is deleted.')
            found = [server for server in found
                     if server.name in parsed_args.names]
        servers.delete(connection, found)
        self.say(plural.of(len(found), 'server is', 'servers are')
                 + ' deleted.')


class _Executing(_Lab):
    """A command that becomes another program."""

    def execute(self, lab: cloud.Lab | None, argv: Sequence[str]) -> NoReturn:
        """Become a program that talks to the lab's cloud.

        :param lab: the lab; None if the program needs none
        :param argv: the program, and its arguments
        :raises LabError: if it cannot be run
        """
        env = {key: value for key, value in os.environ.items()
               if not key.startswith('OS_')}
        env['PATH'] = os.pathsep.join(
            [os.path.join(sys.prefix, 'bin'),
             os.environ.get('PATH', os.defpath)])
        if lab is not None:
            env |= tenant.variables(lab.state)
        program, *arguments = argv
        try:
            os.execvpe(program, [program, *arguments], env)
        except OSError as error:
            raise errors.LabError(
                f'{program} cannot be run: {error.strerror}.') from error


class Shell(_Executing, command.Command):
    """Open a shell in which "openstack" speaks to the lab."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'argv', nargs=argparse.REMAINDER, metavar='COMMAND',
            help='run this instead of a shell, such as: -- openstack server '
                 'list')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        argv = [word for index, word in enumerate(parsed_args.argv)
                if index or word != '--']
        shell = os.environ.get('SHELL') or '/bin/sh'
        lab = self.lab()
        if not argv:
            self.say(f'OS_CLOUD={tenant.CLOUD} in this shell; '
                     f'{tenant.SYSTEM_CLOUD} is the administrator of the '
                     'whole system. End it with "exit".')
        self.execute(lab, argv or [shell])


class Ring(_Executing, command.Command):
    """Run nova-ironic-ring with the lab's nova.conf."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'argv', nargs=argparse.REMAINDER, metavar='COMMAND',
            help='the command, such as: show; "help" lists all commands, and '
                 '"help show" describes one')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        argv = parsed_args.argv
        if argv[:1] == ['--']:
            argv = argv[1:]
        argv = argv or ['--help']
        if argv[0] == 'help' or {'-h', '--help'} & set(argv):
            self.execute(None, ['nova-ironic-ring', *argv])
        lab = self.lab()
        self.execute(lab, [*lab.nova.ring, *argv])


class Logs(_Lab, command.Command):
    """Show the logs of the lab's services."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('names', nargs='*', metavar='NAME',
                            help='the service (default: all nova-computes)')
        parser.add_argument('-f', '--follow', action='store_true',
                            help='continue with what is added')
        parser.add_argument('-n', '--lines', type=_number(1), default=20,
                            metavar='N',
                            help='how many of the last lines (default: 20)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        state = lab_state.State.load(self.directory)
        logs = {path.stem: path
                for path in sorted((state.directory / 'log').glob('*.log'))}
        for name in parsed_args.names:
            if name not in logs:
                raise errors.LabError(
                    f'There is no log of {name} in this lab: it has '
                    f'{", ".join(logs)}.')
        chosen = [str(logs[name])
                  for name in parsed_args.names or state.computes]
        if not chosen:
            raise errors.LabError(
                'This lab has no nova-compute: name the service whose log you '
                f'want, one of {", ".join(logs)}.')
        follow = ['-F'] if parsed_args.follow else []
        os.execvp('tail', ['tail', '-n', str(parsed_args.lines), *follow,
                           *chosen])


_COMMANDS = (Add, Boot, Delete, Down, Enroll, Kill, Logs, Pause, Reload,
             Report, Resume, Ring, Shell, Show, Start, Stop, Up)


class LabApp(app.App):
    """The command line as a whole."""

    NAME = 'tools/lab'

    def __init__(self) -> None:
        manager = commandmanager.CommandManager('nova_ironic_ring.lab')
        for kind in _COMMANDS:
            manager.add_command(kind.__name__.lower(), kind)
        super().__init__(
            'A private cloud on loopback: one Ironic, several nova-computes.',
            version=metadata.version('nova-ironic-ring'),
            command_manager=manager, deferred_help=True)

    def build_option_parser(
            self, description: str | None, version: str | None,
            argparse_kwargs: dict | None = None) -> argparse.ArgumentParser:
        parser = super().build_option_parser(
            description, version, argparse_kwargs)
        # Otherwise the help shows the name of the file that Python runs.
        parser.prog = self.NAME
        parser.add_argument(
            '--name', default=place.DEFAULT_NAME, type=_name, metavar='NAME',
            help="the lab's name, for more than one (default: lab)")
        return parser


def _name(text: str) -> str:
    """Check the name of a lab: its directory has the same name."""
    if not text.replace('-', '').replace('_', '').isalnum():
        raise _unfit(text)
    return text


def _group(text: str) -> str:
    """Check the name of a conductor group, which names a file too."""
    if not text.isascii():
        raise _unfit(text)
    return _name(text).lower()


def _unfit(text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(
        f'"{text}" has other characters than letters, digits, "-" and "_"')


def _set_apart(words: list[str]) -> list[str]:
    """Keep the options of a nova-ironic-ring command from the lab's parser.

    That parser would use those that it knows as well, such as --help.
    """
    remaining = enumerate(words, 1)
    for after, word in remaining:
        if word in ('--name', '--log-file'):
            next(remaining, None)
        elif not word.startswith('-'):
            argv = words[after:]
            if word == 'ring' and argv and argv[0] not in _LEFT_TO_THE_LAB:
                return [*words[:after], '--', *argv]
            break
    return words


def main() -> int:
    """Run the command line.

    :returns: the exit status
    """
    return LabApp().run(_set_apart(sys.argv[1:]) or ['--help'])
