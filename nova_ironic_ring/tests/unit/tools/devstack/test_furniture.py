# SPDX-License-Identifier: Apache-2.0

"""Tests of what devstack finds in the container."""

import pathlib
import subprocess

import fixtures
from oslotest import base

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import furniture
from nova_ironic_ring_tools.devstack import local_conf
from nova_ironic_ring_tools.devstack import settings


class LocalConfTestCase(base.BaseTestCase):

    def _lines(self, **wanted) -> list[str]:
        return local_conf.text(settings.Cloud(**wanted), 'secret', '/opt/git',
                               'stable/1').splitlines()

    def test_ring(self):
        lines = self._lines()
        for line in (
                'GIT_BASE=/opt/git', 'ADMIN_PASSWORD=secret',
                'HOST_IP=10.255.77.2',
                'enable_plugin ironic /opt/git/openstack/ironic.git stable/1',
                'enable_plugin nova-ironic-ring /opt/git/nova-ironic-ring.git '
                'checkout', 'NOVA_IRONIC_RING_COMPUTES=3',
                'NOVA_IRONIC_RING_GROUPS=""',
                'IRONIC_HWINFO_FILE=/opt/stack/hardware_info'):
            self.assertIn(line, lines)
        self.assertNotIn('[[post-config|$NOVA_CONF]]', lines)
        # It ends stack.sh if it is first.
        self.assertLess(lines.index(
            'enable_plugin ironic /opt/git/openstack/ironic.git stable/1'),
            next(number for number, line in enumerate(lines)
                 if line.startswith('enable_plugin nova-ironic-ring')))

    def test_pool_and_groups(self):
        lines = self._lines(driver='pool', groups={'': 2, 'rack-b': 1})
        self.assertIn('NOVA_IRONIC_RING_GROUPS=":2 rack-b:1"', lines)
        self.assertEqual(
            ['[[post-config|$NOVA_CONF]]', '[DEFAULT]',
             'compute_driver = ironic_ring.IronicPoolDriver'], lines[-3:])

    def test_hardware(self):
        lines = local_conf.hardware(300).splitlines()
        self.assertEqual('127.0.0.1 52:54:00:00:00:00 nobody nothing',
                         lines[0])
        self.assertEqual('127.0.0.1 52:54:00:00:01:2b nobody nothing',
                         lines[-1])
        self.assertEqual(300, len(set(lines)))


class FurnitureTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.box = container.Container(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path))
        self.scripts: list[str] = []
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'user_run',
            lambda box, script: self.scripts.append(script)))
        self.useFixture(fixtures.MockPatchObject(
            container.Container, 'root_run', lambda *arguments: ''))
        furniture.furnish(self.box, settings.Cloud(nodes=2), '/opt/git',
                          settings.Sources(branch='stable/1', pip={
                              'PIP_INDEX_URL': 'http://mirror/pypi'}))

    def _text(self, name: str) -> str:
        return (self.box.root / name).read_text()

    def test_files(self):
        self.assertEqual(2, len(
            self._text('opt/stack/hardware_info').splitlines()))
        self.assertIn(f'DATABASE_PASSWORD={self.box.password()}\n',
                      self._text('opt/stack/devstack/local.conf'))

    def test_pip(self):
        self.assertEqual(
            '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n'
            'index-url = http://mirror/pypi\n', self._text('etc/pip.conf'))

    def test_plugin_of_neutron_is_where_the_file_says(self):
        (path,) = self.box.root.glob(
            'usr/local/lib/python3.*/dist-packages/*.pth')
        within = pathlib.Path(path.read_text().strip()).relative_to(
            '/opt/stack/nova-ironic-ring')
        root = pathlib.Path(__file__).parents[5]
        self.assertEqual(
            1, len(list((root / within).glob('*/entry_points.txt'))))

    def test_fake_power(self):
        plugin = self.box.root / 'opt/stack/fake-power/devstack/plugin.sh'
        # What ironic's plugin has: the nodes are words.
        script = f'''
set -e
function provide_nodes {{
    local nodes=$@
    for node_id in $nodes; do $IRONIC_CMD node provide $node_id; done
}}
IRONIC_CMD="echo openstack"
for phase in pre-install install post-config extra test-config; do
    source {plugin} stack $phase
done
provide_nodes a b
source {plugin} unstack
'''
        self.assertEqual(
            ['openstack node power on a', 'openstack node power on b',
             'openstack node provide a', 'openstack node provide b'],
            subprocess.check_output(
                ['bash', '-c', script], text=True).splitlines())

    def test_script(self):
        (script,) = self.scripts
        self.assertIn('--branch stable/1 /opt/git/openstack/devstack.git',
                      script)
        self.assertIn('cirros-made-x86_64-disk.img', script)
