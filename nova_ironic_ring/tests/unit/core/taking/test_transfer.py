# SPDX-License-Identifier: Apache-2.0

"""The transfer of an instance, and what is left where it ends half-way."""

import dataclasses

import ddt
from oslotest import base

from nova_ironic_ring.core.taking import transfer
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import pools
from nova_ironic_ring.core.world import cloud as clouds

NODE = '00000000-0000-0000-0000-000000000001'
KIND = pools.Kind('CUSTOM_BAREMETAL')
OF_A, OF_B = pools.name('a', KIND), pools.name('b', KIND)
FULL = pools.Inventory(1, 1)
ROOM = pools.Inventory(1, 0)

#: After which write a service dies, and what there is then: whether the place
#: has room, whether the allocation is in the place, and whether the instance
#: is.
STOPS = (
    (None, False, False, False),
    ('make_room', True, False, False),
    ('move', True, True, False),
    ('place_instance', True, True, True),
)
#: Where the instance is, and where it is to be.
WAYS = ((OF_B, OF_A), (OF_B, NODE), (NODE, OF_A))
TABLE = tuple((*way, *stop) for way in WAYS for stop in STOPS)


class _Dies(BaseException):
    pass


class TransferBase(base.BaseTestCase):
    """An instance of b, which is to become a's."""

    def begin(self, source, place):
        self.cloud = clouds.Cloud(
            nodes={NODE: clouds.Node(instance='i')},
            rows={pools.provider(place): clouds.Row('a')},
            instances={'i': model.Instance('b', source, task='rebooting')},
            allocations={pools.provider(source): {'i'}},
            inventories={pools.provider(place): FULL})
        self.nova = clouds.Nova(self.cloud, 'a')
        self.placement = clouds.Placement(self.cloud)
        self.wanted = transfer.Transfer(
            'i', self.cloud.instances['i'], {pools.provider(source)}, place,
            place if source == NODE else source)

    def transfer(self):
        return transfer.transfer(self.nova, self.placement, self.wanted)

    def holders(self):
        return {provider for provider, consumers
                in self.cloud.allocations.items() if 'i' in consumers}


@ddt.ddt
class CrashTestCase(TransferBase):
    """A service dies after each of its writes."""

    def _stop_after(self, name):
        """Let the service die after a write; None for before the first."""
        port = self.nova if name == 'place_instance' else self.placement
        call = getattr(port, name or 'make_room')

        def die(*args):
            if name is not None:
                call(*args)
            raise _Dies
        setattr(port, name or 'make_room', die)
        self.assertRaises(_Dies, self.transfer)
        delattr(port, name or 'make_room')

    @ddt.data(*TABLE)
    @ddt.unpack
    def test_what_is_left(self, source, place, stop, has_room, is_moved,
                          is_placed):
        self.begin(source, place)
        self._stop_after(stop)
        provider = pools.provider(place)
        self.assertEqual(
            ROOM if has_room else FULL, self.cloud.inventories[provider])
        self.assertEqual({provider if is_moved else pools.provider(source)},
                         self.holders())
        self.assertEqual(
            ('a', place) if is_placed else ('b', source),
            (self.cloud.instances['i'].host, self.cloud.instances['i'].node))

    @ddt.data(*TABLE)
    @ddt.unpack
    def test_another_finishes_it(self, source, place, stop, *_):
        self.begin(source, place)
        self._stop_after(stop)
        self.wanted = dataclasses.replace(
            self.wanted, expected=self.cloud.instances['i'])
        self.assertIs(transfer.Outcome.DONE, self.transfer())
        self.assertEqual({pools.provider(place)}, self.holders())
        self.assertEqual(
            ('a', place),
            (self.cloud.instances['i'].host, self.cloud.instances['i'].node))


class OutcomeTestCase(TransferBase):
    """Others are faster."""

    def test_allocation_that_rests_elsewhere(self):
        self.begin(OF_B, OF_A)
        self.cloud.allocations = {'elsewhere': {'i'}}
        self.assertIs(transfer.Outcome.NOT_MOVED, self.transfer())
        self.assertEqual({'elsewhere'}, self.holders())
        self.assertEqual('b', self.cloud.instances['i'].host)

    def test_instance_that_has_changed(self):
        self.begin(OF_B, OF_A)
        self.cloud.instances['i'] = model.Instance('b', OF_B, task='deleting')
        self.assertIs(transfer.Outcome.LOST, self.transfer())
        self.assertEqual({pools.uuid_of(OF_A)}, self.holders())
        self.assertEqual('b', self.cloud.instances['i'].host)

    def test_allocation_alone_that_was_left_behind(self):
        self.begin(OF_B, NODE)
        self.cloud.instances['i'] = model.Instance('a', NODE)
        self.wanted = dataclasses.replace(
            self.wanted, expected=self.cloud.instances['i'])
        self.nova = None
        self.assertIs(transfer.Outcome.DONE, self.transfer())
        self.assertEqual({NODE}, self.holders())

    def test_room_that_was_made_for_many(self):
        self.begin(OF_B, OF_A)
        self.wanted = dataclasses.replace(self.wanted, pool=None)
        self.assertIs(transfer.Outcome.NOT_MOVED, self.transfer())
        self.cloud.inventories[pools.uuid_of(OF_A)] = ROOM
        self.assertIs(transfer.Outcome.DONE, self.transfer())

    def test_tracker_forgets_the_node_it_knew(self):
        for source, place, forgotten in (
                (OF_B, NODE, [NODE]), (OF_B, OF_A, [])):
            self.begin(source, place)
            found = []
            self.placement.forget_provider = found.append
            self.transfer()
            self.assertEqual(forgotten, found)
