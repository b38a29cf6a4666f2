# SPDX-License-Identifier: Apache-2.0

import contextlib

from nova.compute import manager
from nova.compute import utils as compute_utils
import nova.conf
from nova.db.main import models
from nova.objects import instance_action
from nova import safe_utils
from oslo_config import fixture as config_fixture
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring.adapters.nova import arrivals
from nova_ironic_ring.adapters.nova import records
from nova_ironic_ring.tests.fixtures import nova_database

CONF = nova.conf.CONF
INSTANCE = nova_database.INSTANCE


class ArrivalsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(nova_database.NovaDatabase())
        self.request = self.database.context()
        self.useFixture(config_fixture.Config(CONF)).config(
            group='database', connection='sqlite://')

    def _ask(self, name='create'):
        instance_action.InstanceAction.action_start(
            self.request, INSTANCE, name)

    def _last(self):
        found = arrivals.last(self.database.context(), INSTANCE)
        return None if found is None else found.host

    def _given_up(self):
        return arrivals.last(self.database.context(), INSTANCE).given_up

    def test_where_it_has_come_last(self):
        self.assertIsNone(self._last())
        self._ask()
        self.assertIsNone(self._last())
        for host in 'a', 'b':
            arrivals.note(self.request, INSTANCE, host)
            self.assertEqual(host, self._last())
        # What else is asked for meanwhile.
        self.request = self.database.context()
        self._ask('lock')
        self.assertEqual('b', self._last())

    def test_where_a_service_with_nova_s_own_driver_has_begun(self):
        self._ask()
        arrivals.note(self.request, INSTANCE, 'a')
        method = manager.ComputeManager._do_build_and_run_instance
        with compute_utils.EventReporter(
                self.request, f'compute_{method.__name__}', 'b', INSTANCE):
            self.assertEqual('b', self._last())

    def _give_up(self, host: str = 'a', seconds: float = 0.0) -> None:
        """Have a service give up a build, as Nova's manager does."""
        with compute_utils.EventReporter(
                self.request, 'compute__do_build_and_run_instance', host,
                INSTANCE):
            if seconds:
                self.time.advance_time_seconds(seconds)

    def test_build_that_is_on_its_way_to_another_service(self):
        now = timeutils.utcnow(with_timezone=True)
        self.time = self.useFixture(utils_fixture.TimeFixture(now))
        self._ask()
        for host, following in ('a', 'b'), ('b', 'c'), ('c', 'd'):
            self._give_up(host, 30)
            self.assertEqual((host, 0), (self._last(), self._given_up()))
            self.time.advance_time_seconds(90)
            self.assertEqual((host, 90), (self._last(), self._given_up()))
            arrivals.note(self.request, INSTANCE, following)
            self.assertEqual(following, self._last())
            self.assertIsNone(self._given_up())

    def test_build_that_has_begun_at_the_next_service(self):
        self.time = self.useFixture(utils_fixture.TimeFixture())
        self._ask()
        self._give_up('a', 30)
        for host in 'b', 'c':
            with compute_utils.EventReporter(
                    self.request, 'compute__do_build_and_run_instance', host,
                    INSTANCE):
                self.assertEqual(host, self._last())
                self.assertIsNone(self._given_up())
                self.time.advance_time_seconds(30)

    def test_build_that_could_not_be_given_up(self):
        self._ask()
        with contextlib.suppress(ValueError), compute_utils.EventReporter(
                self.request, 'compute__do_build_and_run_instance', 'a',
                INSTANCE):
            raise ValueError('RabbitMQ does not answer')
        self.assertEqual('a', self._last())
        self.assertIsNone(self._given_up())

    def test_where_an_unshelving_has_come(self):
        self._ask()
        arrivals.note(self.request, INSTANCE, 'a')
        self.request = self.database.context()
        self._ask('unshelve')
        # Where it was built does not count.
        self.assertIsNone(self._last())
        method = safe_utils.get_wrapped_function(
            manager.ComputeManager.unshelve_instance)
        with compute_utils.EventReporter(
                self.request, f'compute_{method.__name__}', 'b', INSTANCE):
            self.assertEqual('b', self._last())

    def test_what_no_service_has(self):
        for number, (state, task, host) in enumerate((
                ('building', 'scheduling', None), ('building', None, None),
                ('building', None, 'a'),
                ('shelved_offloaded', 'unshelving', None),
                ('shelved_offloaded', 'spawning', None),
                ('shelved_offloaded', 'spawning', 'a'),
                ('shelved_offloaded', None, None), ('error', None, None))):
            self.database.add(models.Instance(
                uuid=f'{number}', host=host, vm_state=state, task_state=task))
        self.database.add(models.Instance(
            uuid='deleted', vm_state='building', deleted=1))
        found = records.Nova(self.database.context(), 'me').unclaimed()
        self.assertEqual({'0', '1', '3', '4'}, found.keys())
        self.assertTrue(all(each.is_to_be_built for each in found.values()))

    def test_it_is_no_error_of_the_build(self):
        self._ask()
        arrivals.note(self.request, INSTANCE, 'a')
        (action,) = instance_action.InstanceActionList.get_by_instance_uuid(
            self.database.context(), INSTANCE)
        (event,) = instance_action.InstanceActionEventList.get_by_action(
            self.database.context(), action.id)
        self.assertEqual('Success', event.result)
        self.assertIsNone(action.message)

    def test_what_cannot_be_noted(self):
        # Nova has nothing that was asked of it.
        self.request.project_id = 'p'
        arrivals.note(self.request, INSTANCE, 'a')
        self.assertIsNone(self._last())
