# SPDX-License-Identifier: Apache-2.0

"""What was under way at a takeover, by the actions in Nova's own tables."""

import nova.conf
from nova import objects
from nova.objects import instance_action
from oslo_config import fixture as config_fixture
from oslo_utils import fixture as utils_fixture
from oslo_utils import timeutils
from oslotest import base

from nova_ironic_ring.adapters.trail import actions
from nova_ironic_ring.compute.instances import recovery
from nova_ironic_ring.core.deciding import audit
from nova_ironic_ring.tests.fixtures import nova_database

INSTANCE, NODE = nova_database.INSTANCE, nova_database.NODE


class LeftByTestCase(base.BaseTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.nova = self.useFixture(nova_database.NovaDatabase())
        self.time = self.useFixture(utils_fixture.TimeFixture())
        self.conf = self.useFixture(config_fixture.Config(nova.conf.CONF))
        self.conf.config(host='b')

    def _ask(self, name: str) -> None:
        """Have a user, or Ironic, ask for something, a minute later."""
        self.time.advance_time_seconds(60)
        instance_action.InstanceAction.action_start(
            self.nova.context(), INSTANCE, name)

    def _record(self, code: audit.Code = audit.Code.INSTANCE_FAILED_OVER,
                host: str = 'b') -> None:
        self.time.advance_time_seconds(60)
        actions.record(self.nova.context(), audit.Entry(
            code, host, node=NODE, instance=INSTANCE, source='a',
            target=host, reason='FORCED_DOWN'), timeutils.utcnow())

    def _left_by(self, task: str | None) -> str | None:
        return recovery.left_by(self.nova.context(), objects.Instance(
            uuid=INSTANCE, task_state=task))

    def test_takeover_in_the_middle_of_something(self):
        self._ask('rescue')
        self.assertIsNone(self._left_by('rescuing'))
        # By consent: nothing was under way.
        self._record(audit.Code.INSTANCE_TAKEN)
        self.assertIsNone(self._left_by('rescuing'))
        self._record()
        self.assertEqual('a', self._left_by('rescuing'))
        self._record(host='c')
        self.conf.config(host='B')
        self.assertEqual('a', self._left_by('rescuing'))
        self.conf.config(host='d')
        self.assertIsNone(self._left_by('rescuing'))
        self.conf.config(host='b')
        # Ironic switches the machine.
        for name in 'stop', 'start':
            self._ask(name)
        for task in 'rescuing', 'spawning', 'shelving', None:
            self.assertEqual('a', self._left_by(task))
        # This may be what was asked for.
        self.assertIsNone(self._left_by('powering-off'))

    def test_what_was_asked_for_after_a_takeover(self):
        self._record()
        for name, task in (('unrescue', 'unrescuing'),
                           ('reboot', 'rebooting'), ('shelve', 'shelving')):
            self._ask(name)
            self.assertIsNone(self._left_by(task))
        self._record()
        self.assertEqual('a', self._left_by('shelving'))
