# SPDX-License-Identifier: Apache-2.0

"""Services of two releases of this package in one ring."""

import json
import pathlib
import sys
from typing import ClassVar

import fixtures
from openstack.compute.v2 import server as sdk_server

from nova_ironic_ring.core.values import profile
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.tests.fixtures import programs
from nova_ironic_ring.tests.functional import base

_PROJECT = pathlib.Path(__file__).resolve().parents[3]
_OLD = 'before'

# Nothing is released yet. The last revision before records said which version
# of the protocol a service speaks.
_BEFORE_RELEASES = '69f1186'

# A release that does not say its version speaks the first one.
_SAY = """
import nova_ironic_ring
try:
    from nova_ironic_ring.core.values.profile import PROTOCOL
except ImportError:
    PROTOCOL = 1
print(nova_ironic_ring.__file__, PROTOCOL)
"""


def _git(*arguments: str) -> str:
    return programs.run('git', '-C', str(_PROJECT), *arguments)


def _previous() -> str:
    """Return the revision of the release before this one."""
    tags = _git('tag', '--merged', 'HEAD~', '--sort=-version:refname').split()
    return tags[0] if tags else _BEFORE_RELEASES


class Release(fixtures.Fixture):
    """The release before this one, installed. Needs the history in git.

    :ivar env: the variables with which a program uses it
    :ivar protocol: the version of the protocol that it speaks
    """

    env: dict[str, str]
    protocol: int

    def _setUp(self) -> None:
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        source, installed = root / 'source', root / 'installed'
        # With its history: the version of the package is counted from that.
        _git('clone', '--quiet', '--shared', '--no-checkout', '.',
             str(source))
        programs.run('git', '-C', str(source), 'checkout', '--quiet',
                     _previous())
        uv = str(pathlib.Path(sys.prefix, 'bin', 'uv'))
        programs.run(uv, 'build', '--quiet', '--wheel', '--python',
                     sys.executable, '--out-dir', str(root), str(source))
        (wheel,) = root.glob('*.whl')
        programs.run(uv, 'pip', 'install', '--quiet', '--no-deps', '--python',
                     sys.executable, '--target', str(installed), str(wheel))
        self.env = {'PYTHONPATH': str(installed)}
        place, protocol = programs.run(
            sys.executable, '-W', 'ignore', '-c', _SAY, **self.env).split()
        assert place.startswith(str(installed)), place
        self.protocol = int(protocol)


class RingTestCase(base.LabTestCase):
    """A service of the release before this one comes, fails and is upgraded.

    The others are of this release.
    """

    release: ClassVar[Release]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.release = Release()
        cls.release.setUp()

    @classmethod
    def tearDownClass(cls):
        cls.release.cleanUp()
        super().tearDownClass()

    def _join(self) -> None:
        """Have the old one join, to which the new ones offer nodes."""
        self.lab.add_compute(_OLD, env=self.release.env)
        self.addCleanup(self.remove_compute, _OLD)
        self.lab.wait_alive(_OLD)
        self.lab.discover_hosts()
        self._wait_share()

    def _wait_share(self) -> None:
        """Wait until the old one has its share of the free nodes."""
        # A pool in which no node counts has one, which is reserved.
        self.lab.wait('A share of the nodes', lambda: self._share() > 1)
        self.lab.wait_settled(self.nodes)

    def _share(self) -> int:
        """Return how many nodes the old one has."""
        return next(member.owned for member in self.lab.ring()
                    if member.host == _OLD)

    def _upgrade(self) -> None:
        """Start the old one with this release."""
        services.NovaCompute(self.lab.nova, _OLD).configure()
        self.lab.start_compute(_OLD)

    def _differ(self) -> str:
        """Return what ``check`` says of the versions of the protocol."""
        done = self.command('ring', 'check', '-f', 'json')
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)
        return ''.join(line['Found'] for line in found
                       if line['Code'] == 'PROTOCOLS_DIFFER')

    def _wait_host(self, server: sdk_server.Server) -> str:
        """Wait until a server has a service of this release.

        :param server: the server, whose service has died
        :returns: that one's host name
        """
        self.lab.wait('Another service for the server', lambda: (
            self.show(server).compute_host in self.lab.state.computes
            and self.show(server).compute_host != _OLD))
        return self.show(server).compute_host

    def test_both_in_one_ring(self):
        self._join()
        self.assertEqual(self.release.protocol != profile.PROTOCOL,
                         _OLD in self._differ())
        server = self.boot_active('of-the-old', _OLD)
        self.assertReboots(server)

        # The old one offers its free nodes, and the new ones take them.
        compute = self.cloud.compute
        (service,) = compute.services(host=_OLD)
        compute.disable_service(service, _OLD, 'nova-compute')
        self.lab.wait('One node left', lambda: self._share() == 1)
        self.assertEqual(_OLD, self.show(server).compute_host)
        compute.enable_service(service, _OLD, 'nova-compute')
        self._wait_share()

        # It dies, and a new one has its server.
        self.lab.compute(_OLD).kill()
        self.force_down(_OLD)
        taker = self._wait_host(server)
        self.assertReboots(server)

        # It is upgraded, and back among the others.
        self.force_down(_OLD, False)
        self._upgrade()
        self._wait_share()
        self.assertEqual(taker, self.show(server).compute_host)
        self.assertReboots(server)
        self.lab.wait('One version of the protocol', lambda: (
            self._differ() == ''))


class PoolTestCase(RingTestCase):
    """The same with pools."""

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)
