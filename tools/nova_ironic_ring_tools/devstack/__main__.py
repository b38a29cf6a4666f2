# SPDX-License-Identifier: Apache-2.0

"""Makes a devstack with the driver in a container, and checks it.

``tools/devstack --help``
"""

import argparse
from collections.abc import Sequence
import dataclasses
import json
import os
import pathlib
import re
import sys

from nova_ironic_ring_tools.devstack import checks
from nova_ironic_ring_tools.devstack import cloud as clouds
from nova_ironic_ring_tools.devstack import conductors
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import furniture
from nova_ironic_ring_tools.devstack import leftovers
from nova_ironic_ring_tools.devstack import local_conf
from nova_ironic_ring_tools.devstack import repositories
from nova_ironic_ring_tools.devstack import settings

_CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
_STACK = f'cd {furniture.DEVSTACK} && exec ./stack.sh'
_CLEAN = f'cd {furniture.DEVSTACK} && ./unstack.sh && ./clean.sh'
# The lines of stack.sh to show: until it has its log, it also prints what it
# traces.
_SUMMARY = re.compile(r'\d{4}-\d\d-\d\d \S+ \| |\[ERROR\]')
_ENVIRONMENT = """\
environment variables:
  GIT_BASE         the address, or a directory, that has the repositories
                   openstack/NAME (default: https://opendev.org)
  DEVSTACK_BRANCH  the branch of all of them (default: stable/2026.1)
  DEBIAN_MIRROR    the address of Debian's packages
  PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_TRUSTED_HOST, PIP_DEFAULT_TIMEOUT
                   as pip takes them
"""


class Devstack:
    """A devstack in a container, which need not exist."""

    def __init__(self, directory: pathlib.Path) -> None:
        """Describe a devstack.

        :param directory: where it is
        """
        self.box = container.Container(directory)
        self._settings = directory / 'settings.json'
        self._stacked = directory / 'stacked'

    def up(self, sources: settings.Sources, wanted: settings.Cloud) -> None:
        """Make the devstack; continue after an earlier call that has failed.

        :param sources: where everything is fetched from
        :param wanted: what is to run
        :raises DevstackError: if it does not come up
        """
        if self._stacked.exists():
            raise errors.DevstackError(
                f'There is a devstack in {self.box.directory}: '
                + ('it does not run any more, so remove it with "down '
                   '--only-remove".' if self.box.leader() is None else
                   'end it with "down", or look at it with "check".'))
        if repositories.uncommitted(_CHECKOUT):
            print('This checkout has changes that are not committed: they '
                  'are left out.')
        print(f'Installing Debian in {self.box.root}', flush=True)
        self.box.make(sources.mirror)
        git_base = repositories.give(self.box, sources)
        repositories.give_own(self.box, _CHECKOUT)
        self.box.boot()
        furniture.furnish(self.box, wanted, git_base, sources)
        self._settings.write_text(json.dumps(dataclasses.asdict(wanted)))
        print('Running stack.sh, which takes half an hour or more', flush=True)
        if self.box.serve(_STACK, 'stack', self.box.directory / 'stack.log',
                          _SUMMARY):
            raise errors.DevstackError(
                f'stack.sh has failed: see {self.box.root}{local_conf.LOG}.')
        if wanted.groups:
            conductors.start(clouds.Cloud(self.box), list(wanted.groups))
        self._stacked.touch()

    def wanted(self) -> settings.Cloud:
        """Return what is to run, as it was given to :meth:`up`.

        :raises DevstackError: if no devstack is up
        """
        try:
            return settings.Cloud(**json.loads(self._settings.read_text()))
        except FileNotFoundError as error:
            raise errors.DevstackError(
                f'There is no devstack in {self.box.directory}: start one '
                'with "up".') from error

    def check(self) -> None:
        """Check the devstack.

        :raises DevstackError: if something is not as it should be
        """
        checks.Checks(clouds.Cloud(self.box), self.wanted()).run()

    def down(self) -> None:
        """Run unstack.sh and clean.sh, and check that nothing is left.

        :raises DevstackError: if something of the plugin is left
        """
        if self.wanted().groups:
            conductors.stop(self.box)
        leftovers.watch(self.box)
        log = self.box.directory / 'clean.log'
        print('Running unstack.sh and clean.sh', flush=True)
        if self.box.serve(_CLEAN, 'clean', log):
            raise errors.DevstackError(
                f'unstack.sh or clean.sh has failed: see {log}; "down '
                '--only-remove" removes everything.')
        left = leftovers.found(self.box)
        if left:
            raise errors.DevstackError(
                'After unstack.sh and clean.sh there is still '
                f'{", ".join(left)}: see {log}; "down --only-remove" removes '
                'everything.')
        self._stacked.unlink(missing_ok=True)
        print('unstack.sh and clean.sh leave nothing of the plugin.')

    def status(self) -> str:
        """Return in one line what there is."""
        if not self.box.directory.exists():
            return f'{self.box.directory}: nothing'
        state = ('does not run' if self.box.leader() is None else
                 'runs, with a devstack' if self._stacked.exists() else
                 'runs, without a devstack that is complete')
        return f'{self.box.directory}: the container {state}'


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        'tools/devstack', description='Make a devstack with the driver in a '
        'container of Debian 12, with fake hardware, and check it. Needs '
        'root.', epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--directory', type=pathlib.Path,
                        default=settings.DIRECTORY,
                        help='where the container is (default: %(default)s)')
    commands = parser.add_subparsers(dest='command', required=True)
    up = commands.add_parser('up', help='make it, and check it')
    up.add_argument('--driver', choices=list(settings.DRIVERS),
                    default=settings.Cloud.driver,
                    help='default: %(default)s')
    up.add_argument('--computes', type=_positive, metavar='N',
                    default=settings.Cloud.computes,
                    help='nova-computes (default: %(default)s)')
    up.add_argument('--nodes', type=_positive, metavar='N',
                    default=settings.Cloud.nodes,
                    help='default: %(default)s')
    up.add_argument('--groups', default='', metavar='GROUPS',
                    help='conductor groups, with a number of nova-computes '
                         'each, such as ":2 rack-b:1"')
    commands.add_parser('check', help='check the one that is up once more')
    commands.add_parser('status', help='say what there is')
    shell = commands.add_parser(
        'shell', help='open a shell there, as the user of devstack')
    shell.add_argument('script', nargs='?',
                       help='commands of bash to run there instead')
    down = commands.add_parser(
        'down', help='run unstack.sh and clean.sh, see that the plugin has '
                     'left nothing, and remove everything')
    how = down.add_mutually_exclusive_group()
    how.add_argument('--keep', action='store_true',
                     help='keep the container, for another "up"')
    how.add_argument('--only-remove', action='store_true',
                     help='remove everything, without unstack.sh and '
                          'clean.sh')
    return parser


def _positive(text: str) -> int:
    """Read a number that is at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f'{text} is less than 1')
    return number


def main(arguments: Sequence[str]) -> int:
    """Run a command.

    :param arguments: of the command line
    :returns: the exit status: 0 if the command did what it should
    """
    chosen = _parser().parse_args(arguments)
    devstack = Devstack(chosen.directory)
    try:
        if chosen.command == 'status':
            print(devstack.status())
            return 0
        if os.geteuid():
            raise errors.DevstackError(
                'Only root may make a container and its network: run '
                'tools/devstack as root.')
        return _do(devstack, chosen)
    except errors.DevstackError as error:
        print(error, file=sys.stderr)
        return 2


def _do(devstack: Devstack, chosen: argparse.Namespace) -> int:
    """Run a command that only root may run."""
    match chosen.command:
        case 'up':
            groups = settings.groups(chosen.groups)
            computes = sum(groups.values()) or chosen.computes
            devstack.up(settings.sources(os.environ), settings.Cloud(
                chosen.driver, computes, chosen.nodes, groups))
            devstack.check()
        case 'check':
            devstack.check()
        case 'shell':
            return devstack.box.shell(chosen.script)
        case 'down':
            if not chosen.only_remove:
                devstack.down()
            if not chosen.keep:
                devstack.box.remove()
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
