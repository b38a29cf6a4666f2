# SPDX-License-Identifier: Apache-2.0

"""Tests of the names of member records."""

import string
import uuid

import ddt
from oslotest import base

from nova_ironic_ring.core.values import member
from nova_ironic_ring.core.values import pools

LONGEST = 'h' * 255


@ddt.ddt
class NameTestCase(base.BaseTestCase):

    def test_same_after_a_restart(self):
        # Written down: if this changes, nobody finds the records of others.
        self.assertEqual('f7c6c9cf-993e-5a50-9e48-96766e0b9ffa',
                         member.uuid_of('compute-1'))
        self.assertEqual('compute-1.ring-member', member.name('compute-1'))

    def test_host_in_any_case(self):
        for spelled in 'Compute-1', ' COMPUTE-1\n':
            self.assertEqual(member.uuid_of('compute-1'),
                             member.uuid_of(spelled))
            self.assertEqual(member.name('compute-1'), member.name(spelled))

    @ddt.data('me', 'me.example.org', 'a.b.12345678',
              'me.CUSTOM_GOLD.c1f64ee7', 'h' * 180, 'h' * 181, LONGEST)
    def test_whose_kind_it_is(self, host):
        found = member.name(host)
        self.assertTrue(member.is_member(found))
        self.assertFalse(pools.is_pool(found))
        self.assertFalse(pools.is_of(host, found))
        self.assertLessEqual(len(found), 200)

    def test_what_is_no_record(self):
        for found in (None, '', 'me', str(uuid.uuid4()), 'a.b.12345678',
                      member.uuid_of('me'),
                      pools.name('me', pools.Kind('CUSTOM_GOLD')),
                      pools.name('me.ring-member', pools.Kind('CUSTOM_GOLD'))):
            self.assertFalse(member.is_member(found), found)

    def test_long_hosts_that_begin_alike(self):
        self.assertNotEqual(member.name('h' * 254 + 'a'),
                            member.name('h' * 254 + 'b'))
        self.assertLessEqual(
            set(member.name(LONGEST)),
            set(string.ascii_lowercase + string.digits + '-.'))

    def test_uuid_is_another_than_that_of_a_pool(self):
        name = member.name('me')
        self.assertNotEqual(pools.uuid_of(name), member.uuid_of('me'))
        self.assertNotEqual(pools.uuid_of('me'), member.uuid_of('me'))
