# SPDX-License-Identifier: Apache-2.0

import dataclasses

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import decisions
from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.deciding import planner
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.passing import node_places
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.taking.building import arrivals
from nova_ironic_ring.core.taking import tracking
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.core.world import cloud as clouds

ARRIVAL = arrivals.Arrival('new', 'node')
SCHEDULED = model.Instance(None, None, True, 'scheduling')


class _Ending(clouds.Process):

    def is_ending(self) -> bool:
        return True


@ddt.ddt
class ArrivalTestCase(base.BaseTestCase):
    """A build comes to the service me for a node of the service other."""

    def setUp(self):
        super().setUp()
        self.cloud = clouds.Cloud()
        self.cloud.nodes['node'] = clouds.Node()
        self.cloud.rows['node'] = clouds.Row('Other')
        self.cloud.instances['new'] = SCHEDULED
        self.cloud.allocations['node'] = {'new'}
        self.tracker = clouds.connect(self.cloud, settings.Settings('me'))

    def _decide(self) -> planner.Step | None:
        return arrivals.decide(self.tracker.world, ARRIVAL)

    def test_node_that_another_has_by_now(self):
        step = self._decide()
        self.assertIs(decisions.Decision.TAKE_FOR_BUILD, step.decision)
        self.assertIsNone(step.offer)
        # As the resource tracker does with each node that is listed.
        self.tracker.take('node', node_places.PassResult(
            plan=planner.Plan({'node': step})))
        self.assertEqual('me', self.cloud.rows['node'].owner)

    def test_what_is_planned(self):
        taken = arrivals.take(self.tracker.world, ARRIVAL)
        self.assertEqual(self._decide(), taken.step)
        self.assertEqual(events.NodeTaken(
            'node', 'Other', decisions.Decision.TAKE_FOR_BUILD),
            taken.happened)

    def test_nothing_is_planned_that_cannot_be_built(self):
        self.cloud.instances.clear()
        self.assertIsNone(arrivals.take(self.tracker.world, ARRIVAL))

    def test_node_that_goes_to_yet_another(self):
        step = self._decide()
        self.cloud.rows['node'].owner = 'third'
        self.assertRaises(
            tracking.NodeLostError, tracking.claim, one_pass.Pass(
                self.tracker.world, self.tracker.current,
                observation.Memory()), 'node', step)

    @ddt.data('unshelving', 'spawning')
    def test_instance_that_is_to_be_unshelved(self, task):
        self.cloud.instances['new'] = model.Instance(
            None, None, task=task, is_given_up=True, is_offloaded=True)
        self.assertIsNotNone(self._decide())

    def test_instance_that_is_shelved(self):
        self.cloud.instances['new'] = model.Instance(
            None, None, is_offloaded=True)
        self.assertIsNone(self._decide())

    @ddt.data(
        {'host': 'other'}, {'is_building': False}, {'is_given_up': True})
    def test_instance_that_is_not_to_be_built_here(self, changes):
        self.cloud.instances['new'] = dataclasses.replace(
            SCHEDULED, **changes)
        self.assertIsNone(self._decide())

    def test_instance_that_is_deleted(self):
        self.cloud.instances.clear()
        self.assertIsNone(self._decide())

    @ddt.data(set(), {'another'}, {'another', 'new'})
    def test_node_that_is_not_allocated_to_the_instance_alone(self, consumers):
        self.cloud.allocations['node'] = consumers
        self.assertIsNone(self._decide())

    def test_node_without_a_row(self):
        self.cloud.rows.clear()
        self.assertIsNone(self._decide())

    def test_service_that_is_about_to_end(self):
        self.tracker.world = dataclasses.replace(
            self.tracker.world, process=_Ending(self.cloud))
        self.assertIsNone(self._decide())
