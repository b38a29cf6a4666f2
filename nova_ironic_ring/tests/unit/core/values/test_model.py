# SPDX-License-Identifier: Apache-2.0

import datetime

import ddt
from oslotest import base

from nova_ironic_ring.core.values import model

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class NamesTestCase(base.BaseTestCase):

    def test_case_and_blanks_do_not_matter(self):
        self.assertEqual('compute-1.example', model.canonical(
            ' Compute-1.EXAMPLE\n'))

    def test_names_of_records(self):
        self.assertEqual('me', model.Service(' Me', NOW).name)
        self.assertEqual('me', model.Row('ME ').owner_name)
        self.assertEqual('me', model.Instance('mE', None).host_name)

    def test_instance_that_has_not_arrived(self):
        self.assertIsNone(model.Instance(None, 'node').host_name)


@ddt.ddt
class InstanceTestCase(base.BaseTestCase):

    @ddt.data((False, None, True),
              (True, None, False),
              (False, 'rebooting', False),
              (True, 'spawning', False))
    @ddt.unpack
    def test_idle(self, is_building, task, expected):
        self.assertIs(expected, model.Instance(
            'me', 'node', is_building, task).is_idle)

    @ddt.data(
        # As conductor sends it, and as the service is at it before it claims.
        (None, 'unshelving', True, 'unshelving'),
        (None, 'spawning', True, 'unshelving'),
        ('me', 'spawning', True, 'unshelving finished'),
        (None, None, True, 'over'),
        (None, 'deleting', True, ''),
        # Nova has not said yet that its former service does not have it.
        ('me', 'unshelving', True, 'unshelving'),
        # It was to be deleted before its former service had said that.
        ('me', 'soft-deleting', True, 'finished'),
        # Nova has ended the task, and says next that it has no service.
        ('me', None, True, 'shelving finished'),
        ('me', 'shelving', False, 'shelving finished'),
        ('me', 'shelving_offloading', False, 'shelving finished'),
        ('me', 'unshelving', False, ''),
        ('me', None, False, ''))
    @ddt.unpack
    def test_shelved(self, host, task, is_offloaded, expected):
        found = model.Instance(host, 'node', task=task,
                               is_offloaded=is_offloaded, is_given_up=True)
        words = expected.split()
        self.assertIs('unshelving' in words, found.is_unshelving)
        self.assertIs('unshelving' in words, found.is_to_be_built)
        self.assertIs('shelving' in words, found.is_shelving)
        self.assertIs('finished' in words, found.is_to_be_finished)
        if is_offloaded:
            self.assertIs('over' in words or task == 'deleting',
                          found.needs_no_node)

    @ddt.data((None, False), ('deleting', True), ('rebooting', False))
    @ddt.unpack
    def test_deleting(self, task, expected):
        self.assertIs(expected, model.Instance(
            'me', 'node', task=task).is_deleting)
