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

"""The command, as an operator uses it on a real cloud."""

import json
import uuid

from nova_ironic_ring.lab import servers
from nova_ironic_ring.tests.functional import base


class CommandTestCase(base.LabTestCase):

    NODES = 12

    def ring(self, *command: str, status: int = 0) -> str:
        """Run the command with the lab's nova.conf."""
        _, *files = self.lab.nova.manage
        return self.run_program('nova-ironic-ring', *files, *command,
                                status=status)

    def read(self, *command: str):
        return json.loads(self.ring(*command, '-f', 'json'))

    def _shown(self) -> dict[str, tuple[int, int]]:
        return {line['Host']: (line['Nodes'], line['Desired'])
                for line in self.read('show')}

    def test_what_it_shows(self):
        self.lab.wait_settled(self.NODES)
        self.assertEqual(
            {member.host: (member.owned, member.desired)
             for member in self.lab.ring()}, self._shown())
        for node, owner in self.lab.owners().items():
            story = self.read('node', 'show', node)
            self.assertEqual(owner, story['Owner'])
            self.assertEqual(f'{owner}: KEEP', story['Decision'])
            break
        plan = self.read('plan', '--remove', 'compute-1')
        self.assertEqual(
            {member.host: member.desired for member in self.lab.ring()},
            {line['Host']: line['Nodes'] for line in plan})
        self.assertEqual('', self.ring('check').strip())
        self.assertIn('Result: Success', self.ring('upgrade', 'check'))

    def test_drain_and_undrain(self):
        before = self._shown()
        self.addCleanup(self.lab.wait_settled, self.NODES)
        self.addCleanup(self.ring, 'undrain', 'compute-2', '--yes')
        self.ring('drain', 'compute-2', '--yes')
        self.assertEqual((0, 0), self._shown()['compute-2'])
        (service,) = self.cloud.compute.services(
            host='compute-2', binary='nova-compute')
        self.assertEqual('disabled', service.status)
        # As Nova's API does, so that nothing is scheduled to it.
        self.ring('undrain', 'compute-2', '--yes')
        self.lab.wait('All as before', lambda: self._shown() == before)

    def test_move_and_failover(self):
        server = servers.wait_active(self.cloud, servers.boot(
            self.cloud, 'moved', 'compute-1'))
        self.addCleanup(servers.delete, self.cloud, [server])
        node = server.hypervisor_hostname
        self.ring('move', node[:13], 'compute-3', '--yes')
        self.assertEqual('compute-3', self.lab.owners()[node])
        self.cloud.compute.reboot_server(server, 'HARD')
        self.lab.wait('The reboot', lambda: self.cloud.compute.get_server(
            server.id).task_state is None)

        self.addCleanup(self.lab.wait_settled, self.NODES)
        self.addCleanup(self.lab.start_compute, 'compute-3')
        self.addCleanup(self.run_program, 'openstack', 'compute', 'service',
                        'set', '--up', 'compute-3', 'nova-compute')
        self.lab.compute('compute-3').kill()
        self.ring('failover', 'compute-3', '--alive', '--yes')
        self.assertNotEqual('compute-3', self.lab.owners()[node])
        self.assertNotIn('compute-3', [
            each.compute_host for each in self.cloud.compute.servers()])

    def test_leftovers(self):
        provider = str(uuid.uuid4())
        self.cloud.placement.post('/resource_providers', json={
            'uuid': provider, 'name': provider}, microversion='1.20')
        (found,) = json.loads(self.ring('check', '-f', 'json', status=1))
        self.assertEqual(('providers', provider),
                         (found['Check'], found['Subject']))
        self.ring('clean', 'providers', '--yes')
        self.assertEqual('', self.ring('check').strip())

        (node,) = self.lab.enroll(1)
        self.lab.wait_settled(self.NODES + 1)
        owner = self.lab.owners()[node]
        self.lab.compute(owner).stop()
        self.addCleanup(self.lab.wait_settled, self.NODES)
        self.addCleanup(self.lab.start_compute, owner)
        self.cloud.baremetal.delete_node(node)
        kinds = {(line['Check'], line['Subject']) for line in json.loads(
            self.ring('check', '-f', 'json', status=1))}
        self.assertIn(('rows', node), kinds)
        self.ring('clean', 'rows', '--yes')
        self.assertNotIn(node, self.lab.owners())
        self.assertNotIn(node, {
            each.id for each in self.cloud.placement.resource_providers()})

    def test_guru_meditation_report(self):
        compute = self.lab.compute('compute-2')
        compute.report()
        self.lab.wait('The section in the report', lambda: (
            'quarrels with = nobody' in compute.log.read_text()))
        section = compute.log.read_text().partition('Ironic ring')[2]
        for line in ('  compute-1 = member', '  trust = full',
                     '  partitions = 32', '    KEEP = '):
            self.assertIn(line, section)

    def test_one_cell(self):
        self.assertEqual(self._shown(), {
            line['Host']: (line['Nodes'], line['Desired'])
            for line in self.read('--cell', 'cell1', 'show')})
        self.ring('--cell', 'elsewhere', 'show', status=2)

    def test_what_cannot_be_reached(self):
        common = str(self.lab.nova.common)
        for arguments in (
                ('--config-file', '/nowhere', 'show'),
                ('--config-file', common, 'show'),
                ('node', 'show', 'nowhere')):
            if arguments[0] == 'node':
                self.ring(*arguments, status=2)
            else:
                self.run_program('nova-ironic-ring', *arguments, status=2)
