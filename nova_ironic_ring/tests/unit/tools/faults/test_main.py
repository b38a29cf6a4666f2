# SPDX-License-Identifier: Apache-2.0

"""What is measured, by the arguments."""

import io

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import state
from nova_ironic_ring_tools.faults import __main__ as faults


class MainTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.output = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.output))

    def test_drivers(self):
        measure = self.useFixture(fixtures.MockPatchObject(
            faults.crowd, 'measure', return_value='')).mock
        for name, driver in (('nova', state.STOCK_DRIVER),
                             ('pool', state.POOL_DRIVER),
                             ('ring', state.RING_DRIVER)):
            self.assertEqual(0, faults.main([
                '--crowd', '2', '--driver', name]))
            measure.assert_called_with(2, driver, 600)

    def test_novas_own_is_there_to_compare_with(self):
        run = self.useFixture(fixtures.MockPatchObject(
            faults, 'run', side_effect=lambda driver, tables, interval: [
                [] for _ in tables])).mock
        for drivers, status in (('nova', 0), ('ring', 1), ('both', 1)):
            run.reset_mock()
            self.assertEqual(status, faults.main([
                '--driver', drivers, '--only', 'kill']))
            self.assertEqual(
                ['ring', 'nova'] if drivers == 'both' else [drivers],
                [call.args[0] for call in run.call_args_list])

    def test_full_update_interval(self):
        made = self.useFixture(fixtures.MockPatchObject(
            faults.cloud, 'Cloud', side_effect=errors.LabError('enough'))).mock
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', io.StringIO()))
        for arguments, seconds in (([], 600),
                                   (['--full-update-interval', '0'], 0)):
            self.assertEqual(2, faults.main(arguments))
            self.assertEqual(
                {'ironic_ring': {'full_update_interval': seconds}},
                made.call_args.kwargs['options'])
            self.assertIn(f'ring, full_update_interval {seconds} s\n',
                          self.output.getvalue())
        self.assertRaises(SystemExit, faults.main,
                          ['--full-update-interval', '-1'])

    def test_setups(self):
        self.useFixture(fixtures.MockPatchObject(
            faults.setups, 'compare', return_value='the table'))
        self.assertEqual(0, faults.main(['--setups']))
        self.assertEqual('the table\n', self.output.getvalue())
