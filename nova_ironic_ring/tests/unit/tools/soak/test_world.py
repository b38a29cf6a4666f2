# SPDX-License-Identifier: Apache-2.0

"""Services come back, whatever of their absence was refused."""

import random
from unittest import mock

from oslotest import base

from nova_ironic_ring.lab import errors
from nova_ironic_ring_tools.soak import world as worlds


class AbsencesTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.lab = mock.Mock()
        self.world = worlds.World(self.lab, random.Random(1), 'network')
        self.absence = worlds.Absence(
            'kill', mock.Mock(), mock.Mock(), 1, 1)

    def _returning(self) -> list[tuple[str, str]]:
        return list(self.world.returning(float('inf')))

    def test_comes_back(self):
        self.world.leave('me', self.absence)
        self.absence.begin.assert_called_once_with(self.lab, 'me')
        self.assertEqual([], list(self.world.returning(0)))
        self.assertEqual([('me', 'kill')], self._returning())
        self.absence.end.assert_called_once_with(self.lab, 'me')
        self.assertEqual([], self._returning())

    def test_begin_that_is_refused_halfway(self):
        self.absence.begin.side_effect = errors.LabError('refused')
        self.assertRaises(errors.LabError, self.world.leave, 'me',
                          self.absence)
        self.assertEqual([('me', 'kill')], self._returning())

    def test_end_that_is_refused(self):
        self.world.leave('me', self.absence)
        self.absence.end.side_effect = [errors.LabError('refused'), None]
        self.assertRaises(errors.LabError, self._returning)
        self.assertEqual([('me', 'kill')], self._returning())
