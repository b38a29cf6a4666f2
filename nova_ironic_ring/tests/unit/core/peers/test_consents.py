# SPDX-License-Identifier: Apache-2.0

import ddt
from oslotest import base

from nova_ironic_ring.core.peers import consents
from nova_ironic_ring.core.peers import ring
from nova_ironic_ring.core.peers import shards
from nova_ironic_ring.core.values import model


class FingerprintTestCase(base.BaseTestCase):

    def _of(self, members: str = 'ab', partitions: int = 32,
            deal: shards.Deal | None = None, group: str | None = None,
            shard: str | None = None) -> str:
        return consents.fingerprint(
            ring.Ring(members, partitions, deal), model.Scope(group, shard))

    def test_whatever_says_for_whom_a_node_is(self):
        found = [
            self._of(), self._of('abc'), self._of(partitions=64),
            self._of(group=''), self._of(group='rack'), self._of(shard='s'),
            self._of(deal=shards.Deal(frozenset('pq'), {}))]
        self.assertEqual(len(found), len(set(found)))

    def test_what_is_spelled_otherwise(self):
        self.assertEqual(self._of('ba', group='Rack', shard=''),
                         self._of('ab', group='rack'))


@ddt.ddt
class TakerTestCase(base.BaseTestCase):

    @ddt.data(
        # What the row says itself comes first.
        ('b', model.Consent('r'), 'b'), ('', model.Consent('r'), ''),
        ('b', model.Consent('r', frozenset('n')), 'b'), ('b', None, 'b'),
        (None, None, None), (None, model.Consent('r'), 'c'),
        (None, model.Consent('r', frozenset('m')), 'c'),
        # It is no silence.
        (None, model.Consent('r', frozenset('n')), ''),
        (None, model.Consent('other', frozenset('n')), ''),
        (None, model.Consent(''), ''),
        (None, model.Consent('other'), None))
    @ddt.unpack
    def test_taker(self, in_row, consent, expected):
        self.assertEqual(expected, consents.taker(
            'n', model.Row('a', in_row), consent, 'r', 'c'))


@ddt.ddt
class LetsTestCase(base.BaseTestCase):

    @ddt.data(
        (True, model.Consent('r')),
        (True, model.Consent('r', frozenset('m'))),
        # Withdrawn, for this node or for all.
        (False, model.Consent('r', frozenset('n'))),
        (False, model.Consent('other')), (False, model.Consent('')),
        (False, None))
    @ddt.unpack
    def test_consent(self, expected, consent):
        self.assertIs(expected, consents.lets(
            model.LastPass(60, consent=consent), 'r', 'n'))

    def test_owner_that_says_nothing(self):
        self.assertFalse(consents.lets(None, 'r', 'n'))
