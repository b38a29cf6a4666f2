# SPDX-License-Identifier: Apache-2.0

"""The section of the Guru Meditation Report."""

import fixtures

from nova_ironic_ring.compute import report
from nova_ironic_ring.tests.unit.compute import base


class ReportTestCase(base.DriverTestCase):

    def _text(self, section) -> str:
        section.set_current_view_type('text')
        return str(section)

    def test_before_the_first_pass(self):
        text = self._text(report.make(self.me.ring))
        self.assertIn('trust = starting', text)
        self.assertIn('members = none', text)
        self.assertNotIn('host = me', text)
        self.assertNotIn('took', text)

    def test_section_of_the_report(self):
        with fixtures.MockPatch(
                'oslo_reports.guru_meditation_report.TextGuruMeditation.'
                'register_section') as register:
            self.driver.init_host('me')
        title, generator = register.mock.call_args.args
        self.assertEqual('Ironic ring', title)
        self.settle()
        self.nova.change_service('b', forced_down=True)
        self.me.run_pass()
        text = self._text(generator())
        for line in ('b = forced down', 'members = a, me', 'partitions = 32',
                     'trust = full', 'too many nodes have vanished = no',
                     'another ring on = no service', 'TAKE_ABANDONED = ',
                     'instances to recover = 0', 'fails_over = True',
                     'took = ', ' UTC'):
            self.assertIn(line, text)

    def test_guards(self):
        self.settle()
        for _ in range(6):
            self.nova.acknowledge('a', 'a')
            self.nova.acknowledge('b', 'me', 'a', 'b')
            self.me.run_pass()
            self.nova.advance(60)
        self.cloud.nodes.clear()
        self.me.begin_pass()
        text = self._text(report.make(self.me.ring))
        self.assertIn('another ring on = a\n', text)
        self.assertIn('too many nodes have vanished = yes', text)
