# SPDX-License-Identifier: Apache-2.0

"""Tests of how Tempest is run, with a stand-in for it."""

import pathlib
import sys
from unittest import mock

import fixtures
from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring_tools.tempest import configuration
from nova_ironic_ring_tools.tempest import outcomes
from nova_ironic_ring_tools.tempest import places
from nova_ironic_ring_tools.tempest import runner

_TESTS = ['tempest.B.test_good[id-1]', 'tempest.B.test_bad[id-2]',
          'tempest.B.test_once[id-3]']

# Of its tests one fails, and one fails when it runs first. It writes down what
# it is called with.
_TEMPEST = f'''#!{sys.executable}
import pathlib, sys
import subunit
arguments = sys.argv[1:]
with open('called', 'a') as called:
    print(*arguments, file=called)
if '--list-tests' in arguments:
    if 'none' not in arguments:
        print('A warning.', *{_TESTS}, sep='\\n')
    sys.exit(2 if 'broken' in arguments else 0)
result = subunit.StreamResultToBytes(sys.stdout.buffer)
before = pathlib.Path('before')
chosen = pathlib.Path(arguments[arguments.index('--load-list') + 1])
for test in chosen.read_text().split():
    bad = 'bad' in test or 'once' in test and not before.exists()
    result.status(test_id=test, test_status='inprogress')
    result.status(test_id=test, test_status='fail' if bad else 'success')
before.touch()
sys.exit(1)
'''


class RunnerTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (root / 'log').mkdir()
        (root / 'bin').mkdir()
        self.directory = root / 'tempest'
        for name, source in (('tempest', _TEMPEST),
                             ('stestr', '#!/bin/sh\nmkdir .stestr\n')):
            path = root / 'bin' / name
            path.write_text(source)
            path.chmod(0o755)
        self.useFixture(fixtures.MockPatchObject(
            services, 'program', lambda name: str(root / 'bin' / name)))
        self.useFixture(fixtures.MockPatchObject(
            configuration, 'prepare', return_value=configuration.Ground(
                'image', 'image-2', 'flavor', 'flavor-2', '2.103')))
        self.lab = mock.Mock(state=lab_state.State(
            root, ports={'keystone': 20001}, secret='s3cret'))
        self.tempest = runner.Tempest(places.of_lab(self.lab), 3)

    def _called(self) -> list[str]:
        return (self.directory / 'called').read_text().splitlines()

    def test_tests(self):
        self.assertEqual(_TESTS, self.tempest.tests(['--regex', 'x']))
        self.assertEqual(
            [f'run --config-file {self.directory}/tempest.conf --list-tests '
             '--regex x'], self._called())
        self.assertTrue((self.directory / '.stestr').exists())

    def test_no_tests(self):
        for chosen, said in (('none', 'Tempest has no tests for none'),
                             ('broken', 'ends with 2')):
            self.assertIn(said, str(self.assertRaises(
                errors.LabError, self.tempest.tests, [chosen])))

    def test_run(self):
        """What fails runs once more, alone."""
        told: list[str] = []
        results = self.tempest.run(
            _TESTS, lambda test, result: told.append(test))
        self.assertEqual({
            'tempest.B.test_good': (outcomes.Outcome.PASSED, False),
            'tempest.B.test_bad': (outcomes.Outcome.FAILED, True),
            'tempest.B.test_once': (outcomes.Outcome.PASSED, True),
        }, {test: (result.outcome, result.again)
            for test, result in results.items()})
        self.assertEqual(_TESTS + _TESTS[1:], told)
        self.assertEqual(2, self.lab.check.call_count)
        first, second = self._called()
        self.assertTrue(first.endswith('--subunit --concurrency 3'), first)
        self.assertTrue(second.endswith('--subunit --concurrency 1'), second)

    def test_service_that_dies(self):
        self.lab.check.side_effect = errors.LabError('compute-1 has died')
        self.assertRaises(errors.LabError, self.tempest.run, _TESTS,
                          lambda test, result: None)
