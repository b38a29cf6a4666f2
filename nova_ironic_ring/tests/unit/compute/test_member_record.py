# SPDX-License-Identifier: Apache-2.0

"""The member record of a service, as Nova's resource tracker sees it."""

from unittest import mock

import fixtures
from keystoneauth1 import exceptions as keystone_exceptions
from nova.compute import provider_tree
from nova import exception

from nova_ironic_ring.adapters.nova import stats
from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base

ME, UUID = member.name('me'), member.uuid_of('me')
OTHER = member.name('a')


class MemberRecordTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.warnings = self.useFixture(
            fixtures.FakeLogger('nova.virt.ironic'))

    def test_it_is_listed_first(self):
        for _ in range(2):
            first, *rest = self.driver.get_available_nodes()
            self.assertEqual(ME, first)
            self.assertNotEqual([], rest)
            self.assertEqual([], list(filter(member.is_member, rest)))
            self.nova.advance()

    def test_names_by_uuid(self):
        self.settle()
        listed = self.driver.get_available_nodes()
        found = self.driver.get_nodenames_by_uuid()
        self.assertEqual(ME, found[UUID])
        self.assertEqual({fake_nova.key(name): name for name in listed}, found)
        self.assertLess(1, len(found))

    def test_it_has_no_size_and_says_what_the_service_says(self):
        self.settle()
        found = self.driver.get_available_resource(ME)
        self.assertEqual((ME, UUID, 'ironic'), (
            found['hypervisor_hostname'], found['uuid'],
            found['hypervisor_type']))
        for name in ('vcpus', 'vcpus_used', 'memory_mb', 'memory_mb_used',
                     'local_gb', 'local_gb_used'):
            self.assertEqual(0, found[name], name)
        self.assertIsNone(found['disk_available_least'])
        self.assertEqual([], found['supported_instances'])
        # It is no node that an operator could look at.
        self.assertNotIn('cpu_arch', self.warnings.output)
        # A pass has written the same into the record.
        self.assertEqual(self.nova.row(UUID).stats, found['stats'])
        said = stats.read_member(found['stats'], 'me')
        self.assertEqual(self.me.ring.settings.scope, said.scope)
        self.assertEqual(
            self.me.ring.result.work.said.last_pass, said.last_pass)

    def test_before_the_first_pass(self):
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, ME)

    def test_record_of_another_service(self):
        self.settle()
        self.assertRaises(exception.ComputeHostNotFound,
                          self.driver.get_available_resource, OTHER)
        self.assertFalse(self.driver.node_is_available(OTHER))
        self.assertTrue(self.driver.node_is_available(ME))

    def test_nova_never_deletes_it(self):
        self.settle()
        for name in ME, OTHER:
            self.assertFalse(self.driver.is_node_deleted(name))

    def test_its_provider_has_nothing(self):
        self.settle()
        tree = provider_tree.ProviderTree()
        tree.new_root(ME, UUID)
        self.driver.update_provider_tree(tree, ME)
        found = tree.data(UUID)
        self.assertEqual(({}, set(), set()), (
            found.inventory, found.traits, found.aggregates))
        self.assertEqual([UUID], tree.get_provider_uuids())


class MemberRecordWithPoolsTestCase(base.PeersWithPools, MemberRecordTestCase):

    def test_names_by_uuid(self):
        super().test_names_by_uuid()
        name = pools.name('me', base.KIND)
        self.assertEqual({UUID: ME, pools.uuid_of(name): name},
                         self.driver.get_nodenames_by_uuid())


class MakingTestCase(base.DriverTestCase):
    """Nova's resource tracker makes the record and its provider."""

    def setUp(self):
        super().setUp()
        self.tracker = self.me.manager.rt
        self.update = self.tracker.update_available_resource = mock.Mock(
            side_effect=self._update)
        self.known: list[bool] = []
        self.driver.init_host('me')

    def _update(self, context: object, node: str, startup: bool = False
                ) -> None:
        if node == ME:
            self.known.append(node in self.me.tracked)
        self.me._track(context, node, startup)

    def _made(self) -> list[bool]:
        """Run a pass, and say of each time that the record is made in it.

        :returns: whether the tracker knew it before
        """
        self.known.clear()
        self.nova.advance(60)
        self.me.run_pass()
        return list(self.known)

    def _settle(self) -> None:
        self._made()
        self._made()
        self.me.placement.invalidate_resource_provider.reset_mock()

    def test_once(self):
        self.assertEqual([False], self._made())
        self.assertEqual('me', self.nova.row(UUID).host)
        for _ in range(3):
            before = self.cloud.members['me'].last_pass
            self.assertEqual([], self._made())
            # A pass goes on writing it.
            self.assertNotEqual(before, self.cloud.members['me'].last_pass)

    def test_start_where_it_is(self):
        self._settle()
        self.me.tracked.clear()
        self.driver.ring_service.memory = type(self.me.ring.memory)()
        self.assertEqual([], self._made())

    def test_operator_has_deleted_the_row(self):
        self._settle()
        del self.cloud.members['me']
        self.assertIn(ME, self.me.tracked)
        # Otherwise the tracker would write only what differs.
        self.assertEqual([False], self._made())
        self.me.placement.invalidate_resource_provider.assert_any_call(UUID)
        self.assertIn('me', self.cloud.members)
        self.assertEqual([], self._made())

    def _answer(self, answer: mock.Mock) -> None:
        fake_nova.interpose(
            self.me.placement.get, f'/resource_providers/{UUID}', answer)

    def test_operator_has_deleted_the_provider(self):
        self._settle()
        self._answer(mock.Mock(return_value=fake_nova.answer(404)))
        self.assertEqual([False], self._made())
        self.me.placement.invalidate_resource_provider.assert_any_call(UUID)

    def test_placement_does_not_say(self):
        for answer in (mock.Mock(side_effect=(
                keystone_exceptions.ConnectFailure)),
                mock.Mock(return_value=fake_nova.answer(503))):
            self._settle()
            self._answer(answer)
            self.assertEqual([], self._made())
            answer.assert_called()
            forgotten = self.me.placement.invalidate_resource_provider
            self.assertNotIn(mock.call(UUID), forgotten.call_args_list)


class MakingWithPoolsTestCase(base.PeersWithPools, MakingTestCase):
    """The same, with pools."""
