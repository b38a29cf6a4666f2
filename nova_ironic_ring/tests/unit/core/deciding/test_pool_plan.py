# SPDX-License-Identifier: Apache-2.0

"""Given what is seen, these nodes count and these instances are taken."""

import dataclasses
from typing import Any

import ddt
from oslotest import base

from nova_ironic_ring.core.deciding import pool_plan
from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import trust
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.values import settings

GOLD = pools.Kind('CUSTOM_GOLD')
MINE, OF_A = pools.name('me', GOLD), pools.name('a', GOLD)
RING = ring.Ring({'me', 'a', 'b'}, 32)
NODES = [f'node-{number}' for number in range(30)]
#: One that is for this service, and one that is for another.
HERE = next(node for node in NODES if RING.owner(node) == 'me')
THERE = next(node for node in NODES if RING.owner(node) == 'a')
DEAD = membership.State.FORCED_DOWN
ALIVE = membership.State.MEMBER
COUNTS = pool_plan.Step(MINE)
NOTHING = pool_plan.Step()
FAILS_OVER = pool_plan.Step(MINE, True, pool_plan.Wanted('i', HERE, 'a'))
FOLLOWS = pool_plan.Step(
    MINE, True, pool_plan.Wanted('i', HERE, 'a', consents=True))
IN_POOL = model.Instance('a', OF_A)


class PlanBase(base.BaseTestCase):
    """The services me, a and b, where it is not said otherwise."""

    def setUp(self):
        super().setUp()
        self.current = settings.Settings('me')
        self.states = dict.fromkeys(('me', 'a', 'b'), ALIVE)
        self.memory = observation.Memory(
            view=view.View(trust=trust.Trust.FULL, ring=RING),
            own_work=observation.OwnWork(is_known=True))
        self.seen = pool_plan.Seen(
            {}, frozenset(), {}, {},
            rows={pools.uuid_of(MINE): model.Row('me', pool=MINE)})

    def see(self, **fields: Any) -> None:
        self.seen = dataclasses.replace(self.seen, **fields)

    def put(self, node: str = HERE, instance: str | None = None,
            kind: pools.Kind | None = GOLD) -> None:
        """See a node."""
        self.see(nodes={**self.seen.nodes, node: pools.Node(kind, instance)})

    def decide(self) -> pool_plan.Plan:
        """Decide, and see that it comes out alike the second time."""
        self.memory.view = dataclasses.replace(
            self.memory.view, states=self.states,
            silences=dict.fromkeys(self.states, 0.0))
        found = pool_plan.decide(self.seen, self.memory, self.current)
        self.assertEqual(found, pool_plan.decide(
            self.seen, self.memory, self.current))
        return found

    def step(self, node: str = HERE) -> pool_plan.Step:
        return self.decide().steps[node]


@ddt.ddt
class StepTestCase(PlanBase):

    @ddt.data((HERE, GOLD, (), COUNTS), (THERE, GOLD, (), NOTHING),
              (HERE, None, (), NOTHING), (HERE, GOLD, (HERE,), NOTHING))
    @ddt.unpack
    def test_free_node(self, node, kind, narrowed, expected):
        self.put(node, kind=kind)
        self.see(narrowed=frozenset(narrowed))
        self.assertEqual(expected, self.step(node))

    @ddt.data(HERE, THERE)
    def test_own_instance_counts_wherever_the_ring_maps_the_node(self, node):
        other = pools.name('me', pools.Kind('CUSTOM_SILVER'))
        self.put(node, 'i')
        self.see(mine=frozenset({'i'}))
        for place, expected in (
                # Also where the kind of its node has changed.
                (other, pool_plan.Step(other, True)),
                (node, pool_plan.Step(MINE, True, pool_plan.Wanted(
                    'i', node, 'me', is_own=True))),
                ('another', NOTHING), (None, NOTHING)):
            self.see(places={'i': place})
            self.assertEqual(expected, self.step(node))

    @ddt.data(
        # Nobody has it, or no service.
        (None, ALIVE, (), COUNTS),
        (model.Instance(None, None), ALIVE, (), COUNTS),
        (IN_POOL, ALIVE, (), NOTHING),
        (IN_POOL, ALIVE, ('a',), FOLLOWS),
        (dataclasses.replace(IN_POOL, task='rebooting'), ALIVE, ('a',),
         NOTHING),
        (IN_POOL, DEAD, (), FAILS_OVER),
        (dataclasses.replace(IN_POOL, task='rebooting'), DEAD, (),
         FAILS_OVER),
        (model.Instance('a', HERE), DEAD, (), FAILS_OVER),
        # Whoever owns a node in Ironic may write any instance into it.
        (model.Instance('a', 'another'), DEAD, (), NOTHING))
    @ddt.unpack
    def test_instance_of_another(self, known, state, consenting, expected):
        self.current = dataclasses.replace(self.current, follows=True)
        self.put(instance='i')
        self.states['a'] = state
        self.see(of_others={'i': known} if known else {},
                 consenting=frozenset(consenting))
        self.assertEqual(expected, self.step())

    def test_failover_that_is_not_configured(self):
        self.current = dataclasses.replace(
            self.current, follows=True, fails_over=False)
        self.put(instance='i')
        self.states['a'] = DEAD
        self.see(of_others={'i': IN_POOL})
        self.assertEqual(NOTHING, self.step())

    def test_it_counts_whatever_the_trust(self):
        # Or its pool would go. Nothing is taken then, for all that.
        self.put(instance='i')
        self.states['a'] = DEAD
        self.see(of_others={'i': IN_POOL})
        self.memory.view = dataclasses.replace(
            self.memory.view, trust=trust.Trust.BLACKOUT, is_ending=True)
        self.assertEqual(FAILS_OVER, self.step())
        self.assertFalse(self.memory.view.may_take)


class ClaimTestCase(PlanBase):
    """A free node that is for this service, and that b has a record of."""

    def setUp(self):
        super().setUp()
        self.put()
        self.see(other_rows={HERE: model.Row('b')})
        self.ring = RING.fingerprint(self.current.scope)

    def say(self, ring: str | None) -> None:
        """Have b say that it acknowledges a ring."""
        self.memory.view = dataclasses.replace(
            self.memory.view, services={'b': model.Service(
                'b', model.NEVER, said=model.Member(
                    model.LastPass(60), model.Scope(), ring=ring))})

    def test_one_whose_owner_acknowledges_the_ring(self):
        self.say(self.ring)
        plan = self.decide()
        self.assertEqual(COUNTS, plan.steps[HERE])
        step = plan.claims.steps[HERE]
        self.assertTrue(step.decision.takes)
        self.assertEqual(self.ring, step.claim and step.claim.ring)

    def test_one_that_is_waited_for(self):
        for ring_ in 'other', None:
            self.say(ring_)
            plan = self.decide()
            self.assertEqual(NOTHING, plan.steps[HERE])
            self.assertEqual({HERE}, set(plan.claims.waits))

    def test_one_of_an_owner_without_a_record(self):
        plan = self.decide()
        self.assertEqual(NOTHING, plan.steps[HERE])
        self.assertEqual({HERE}, set(plan.claims.waits))

    def test_newcomer_leaves_it(self):
        self.say(self.ring)
        self.memory.own_work = observation.OwnWork()
        other = next(node for node in NODES if node != HERE
                     and RING.owner(node) == 'me')
        self.put(other)
        plan = self.decide()
        self.assertFalse(plan.claims.steps[HERE].decision.takes)
        # One without a record counts by the ring alone.
        self.assertEqual((NOTHING, COUNTS),
                         (plan.steps[HERE], plan.steps[other]))


class PlanTestCase(PlanBase):

    def test_what_is_wanted_by_pool(self):
        self.put(instance='i')
        self.put(THERE)
        self.states['a'] = DEAD
        self.see(of_others={'i': IN_POOL})
        plan = self.decide()
        self.assertEqual({MINE: [FAILS_OVER.takes]}, plan.wanted)
        self.assertEqual({HERE: MINE}, plan.counts)
