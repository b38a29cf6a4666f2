# SPDX-License-Identifier: Apache-2.0

"""Zones of services, and a takeover by one that has a provider.yaml."""

import collections

from nova_ironic_ring.core.values import member
from nova_ironic_ring.lab.running import services
from nova_ironic_ring.lab.running import state as lab_state
from nova_ironic_ring.lab import servers
from nova_ironic_ring.lab import tenant
from nova_ironic_ring.tests.functional import base

_TRAIT = 'CUSTOM_NEW_FIRMWARE'


class PlacementTestCase(base.LabTestCase):
    """Two services with pools."""

    KIND = base.Kind(driver=lab_state.POOL_DRIVER, computes=2, nodes=12)

    def setUp(self):
        super().setUp()
        self.one, self.two = self.lab.state.computes

    def restart(self, name: str, overrides: services.Sections) -> None:
        self.lab.configure_compute(name, overrides)
        self.lab.compute(name).kill()
        self.lab.start_compute(name)

    def places(self) -> dict[str, set[str]]:
        """Return the providers of each service, by its name."""
        found: dict[str, set[str]] = collections.defaultdict(set)
        with self.lab.cell() as connected, connected.cursor() as cursor:
            cursor.execute(
                'SELECT host, uuid FROM compute_nodes WHERE deleted = 0 '
                f"AND hypervisor_hostname NOT LIKE '%{member.SUFFIX}'")
            for host, uuid in cursor.fetchall():
                found[host].add(uuid)
        return found

    def members(self, aggregate: str) -> set[str]:
        """Return the providers that Placement has in an aggregate.

        Nova's API puts there the first compute node of a host that it puts
        into an aggregate. That may be the member record, if Nova's tracker,
        which makes several at a time, made it first.
        """
        return {each['uuid'] for each in self.cloud.placement.get(
            f'/resource_providers?member_of={aggregate}', microversion='1.20'
        ).json()['resource_providers']}.difference(
            map(member.uuid_of, self.lab.state.computes))


class ZonesTestCase(PlacementTestCase):
    """Each service is in an availability zone of its own."""

    def setUp(self):
        super().setUp()
        there = {each.name: each.uuid
                 for each in self.cloud.compute.aggregates()}
        #: The zone of each service, and its aggregate.
        self.zones = dict(zip((self.one, self.two), tenant.ZONES))
        self.aggregates = {
            host: there[zone] for host, zone in self.zones.items()}
        self.addCleanup(self._move, tenant.ZONES[0])
        self._move(tenant.ZONES[1])
        self.wait_in_zones()

    def _move(self, zone: str) -> None:
        tenant.move(self.lab.state, self.two, zone)

    def wait_in_zones(self) -> None:
        """Wait until all nodes or pools are in the zones of their services."""
        def are_there() -> bool:
            found = self.places()
            return set(found) == set(self.zones) and all(
                self.members(aggregate) == found[host]
                for host, aggregate in self.aggregates.items())
        self.lab.wait('All in their zones', are_there)

    def assertBuildsInZone(self) -> None:
        """See that a build for the zone of each service comes to it."""
        built = [(host, servers.wait_active(self.cloud, self.boot(
            f'for-{zone}', availability_zone=zone)))
            for host, zone in self.zones.items()]
        for host, server in built:
            self.assertEqual(host, self.show(server).compute_host)
        servers.delete(self.cloud, [server for _, server in built])
        self.lab.wait_settled(self.nodes)

    def _set_traits(self, traits: dict[str, list[str]]) -> None:
        """Give nodes traits, by their UUIDs."""
        baremetal = self.lab.connect('lab-system').baremetal
        for node, wanted in traits.items():
            baremetal.set_node_traits(node, wanted)

    def test_pools_that_are_replaced(self):
        usual = {node.id: list(node.traits or ()) for node
                 in self.cloud.baremetal.nodes(details=True)}
        self.addCleanup(self._set_traits, usual)
        # Ironic changes no node that is being cleaned.
        self.addCleanup(self.lab.wait_settled, self.nodes)
        before = self.places()
        self._set_traits({
            node: [*traits, _TRAIT] for node, traits in usual.items()})
        self.lab.wait('Other pools', lambda: all(
            not before[host] & places
            for host, places in self.places().items()))
        self.wait_in_zones()
        self.assertBuildsInZone()

        # And while the services are down.
        before = self.places()
        for host in self.zones:
            self.lab.compute(host).kill()
        self._set_traits(usual)
        for host in self.zones:
            self.lab.start_compute(host)
        self.lab.wait('Other pools', lambda: all(
            not before[host] & places
            for host, places in self.places().items()))
        self.lab.wait_settled(self.nodes)
        self.wait_in_zones()
        self.assertBuildsInZone()

    def test_service_that_is_disabled_and_enabled(self):
        (service,) = self.cloud.compute.services(
            host=self.two, binary='nova-compute')
        self.cloud.compute.disable_service(service)
        self.addCleanup(self.cloud.compute.enable_service, service)
        self.lab.wait('All nodes with the other', lambda: (
            self.lab.shares().get(self.one) == self.nodes))
        self.cloud.compute.enable_service(service)
        self.lab.wait_settled(self.nodes)
        self.wait_in_zones()
        self.assertBuildsInZone()

    def test_change_of_drivers(self):
        for driver in (lab_state.RING_DRIVER, lab_state.POOL_DRIVER):
            for host in self.zones:
                self.restart(host, {'DEFAULT': {'compute_driver': driver}})
            is_pool = driver == lab_state.POOL_DRIVER
            self.lab.wait(f'All with {driver}', lambda is_pool=is_pool: (
                bool(self._find().owners) is not is_pool
                and bool(self._find().pools) is is_pool))
            self.lab.wait_settled(self.nodes)
            self.wait_in_zones()
            self.assertBuildsInZone()
            # Services in zones of their own are one finding, and the only.
            self.assertEqual(['AGGREGATES_DIFFER'], [
                finding['Code'] for finding in self.read('check', status=1)])


class ProviderYamlTestCase(PlacementTestCase):

    def test_takeover_into_a_pool_with_an_added_class_in_use(self):
        # The first service of a lab has a provider.yaml.
        taker, dead = self.one, self.two
        compute, name = self.cloud.compute, 'licensed-of-the-taker'
        usual = compute.find_flavor(
            tenant.FLAVOR, ignore_missing=False, get_extra_specs=True)
        flavor = compute.create_flavor(
            name=name, ram=usual.ram, vcpus=usual.vcpus, disk=usual.disk)
        self.addCleanup(compute.delete_flavor, flavor)
        compute.create_flavor_extra_specs(flavor, {
            **usual.extra_specs, f'resources:{services.PROVIDED_CLASS}': '1'})
        licensed = servers.wait_active(
            self.cloud, self.boot(name, flavor=name))
        self.assertEqual(taker, licensed.compute_host)
        before = self.allocations(licensed)
        server = self.boot_active('of-the-dead', dead)
        self.fail_over(server)
        self.assertEqual(taker, self.show(server).compute_host)
        self.wait_idle(server)
        self.assertReboots(server)
        self.assertTrue(self.has_place(self.show(server)))
        self.assertEqual(before, self.allocations(licensed))
        servers.delete(self.cloud, [server, licensed])
