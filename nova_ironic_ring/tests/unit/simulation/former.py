# SPDX-License-Identifier: Apache-2.0

"""A nova-compute with the release before this one, of protocol 2.

It neither gives a consent by ring nor knows one: it goes by what the rows of
nodes say, and writes that for all.
"""

from collections.abc import Collection
import dataclasses

from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import profile
from nova_ironic_ring.tests.unit.simulation import host


class _Nova(host.Nova):
    """Nova's records, as that release reads and writes them."""

    protocol = profile.OFFERS

    def ring_services(self) -> list[model.Service]:
        # To it, all are as it is.
        return [dataclasses.replace(each, protocol=self.protocol)
                for each in super().ring_services()]

    def last_passes(self, hosts: Collection[str]
                    ) -> dict[str, model.LastPass]:
        return {name: dataclasses.replace(said, consent=None)
                for name, said in super().last_passes(hosts).items()}


class _Tracker(host.Tracker):
    """Nova's resource tracker with that release."""

    protocol = profile.OFFERS


class FormerHost(host.Host):
    """Offers each node in its row, and goes by what other rows offer."""

    NOVA = _Nova
    TRACKER = _Tracker

    @property
    def driver(self) -> type[host.Host]:
        return host.Host
