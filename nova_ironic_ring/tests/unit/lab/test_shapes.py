# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from nova_ironic_ring.core.values import pools
from nova_ironic_ring.lab import shapes


class ShapesTestCase(base.BaseTestCase):

    def test_sizes_are_those_of_real_machines(self):
        sizes = {shape.memory for shape in shapes.MIXED}
        self.assertEqual((256 * 1024, 2 * 1024 * 1024),
                         (min(sizes), max(sizes)))

    def test_first_nodes_serve_the_usual_flavor(self):
        # Small labs have no others.
        self.assertEqual({'baremetal'}, {
            shapes.of(number).resource_class for number in range(1, 5)})

    def test_every_class_has_a_flavor(self):
        self.assertEqual({shape.resource_class for shape in shapes.MIXED},
                         set(shapes.FLAVORS))

    def test_usual_flavor_is_served_by_several_kinds(self):
        kinds = {pools.Kind(
            shape.resource_class, shape.traits, frozenset(
                (name, shape.architecture) for name in shape.capabilities))
            for shape in shapes.MIXED if shape.resource_class == 'baremetal'}
        self.assertEqual(2, len(kinds))

    def test_again_and_again(self):
        self.assertEqual([shapes.of(5), shapes.of(8)],
                         [shapes.of(15), shapes.of(18)])
        self.assertEqual({shapes.USUAL}, {
            shapes.of(number, shapes.ALIKE) for number in range(1, 9)})

    def test_attributes(self):
        said = shapes.of(7).attributes(('iscsi_boot:true',))
        self.assertEqual({
            'resource_class': 'baremetal', 'properties': {
                'cpus': 128, 'memory_mb': 1024 * 1024, 'local_gb': 1920,
                'cpu_arch': 'x86_64', 'capabilities':
                    'boot_mode:uefi,secure_boot:true,iscsi_boot:true'}}, said)
