# SPDX-License-Identifier: Apache-2.0

"""The properties of the lab's nodes, like machines of a data centre."""

from collections.abc import Mapping, Sequence
import dataclasses

#: The trait of nodes with fast disks.
FAST_DISKS = 'CUSTOM_NVME'
#: The key that makes deployments on a node fail, in its driver_info.
FAILS = 'ironic_ring_lab_fails'

#: Properties of nodes that cannot be, as much of it as Ironic takes: sizes
#: have to be numbers, and 64 KiB are for all properties.
IMPOSSIBLE: Sequence[Mapping[str, object]] = (
    # In bytes.
    {'memory_mb': 2 ** 40, 'local_gb': 2 ** 33, 'cpus': 2 ** 33},
    {'memory_mb': 4096, 'cpu_arch': ['x86_64'], 'capabilities': {'a': 'b'}},
    {'memory_mb': 4096, 'cpu_arch': 'x86_64',
     'capabilities': f'\U0001f600:\x1b[31m,big:{"x" * 30000}'})


@dataclasses.dataclass(frozen=True)
class Shape:
    """The properties of a node.

    :ivar resource_class: its resource class, and the name of the flavor for it
    :ivar cpus: number of processors
    :ivar memory: memory in MiB
    :ivar disk: disk in GiB
    :ivar architecture: the architecture of its processors, as Nova names it
    :ivar traits: its traits
    :ivar capabilities: its capabilities, besides those that all nodes have
    """

    resource_class: str
    cpus: int
    memory: int
    disk: int
    architecture: str = 'x86_64'
    traits: frozenset[str] = frozenset()
    capabilities: tuple[str, ...] = ()

    def attributes(self, more: Sequence[str] = ()) -> dict[str, object]:
        """Return the attributes of a node, as Ironic names them.

        :param more: capabilities to add
        """
        return {
            'resource_class': self.resource_class,
            'properties': {
                'cpus': self.cpus, 'memory_mb': self.memory,
                'local_gb': self.disk, 'cpu_arch': self.architecture,
                'capabilities': ','.join(
                    ('boot_mode:uefi', *self.capabilities, *more))}}


#: The shape of most nodes, and of the first flavor.
USUAL = Shape('baremetal', 64, 256 << 10, 960)
# The scheduler treats it as the usual one, but it is larger.
_ROOMY = Shape('baremetal', 96, 512 << 10, 1920)
# For the same flavor, but with traits and capabilities of its own.
_QUICK = Shape('baremetal', 128, 1 << 20, 1920, traits=frozenset(
    {'HW_CPU_X86_AVX512F'}), capabilities=('secure_boot:true',))
_LARGE = Shape('baremetal-large', 256, 2 << 20, 15360,
               traits=frozenset({FAST_DISKS, 'HW_CPU_X86_AVX512F'}))
_ARM = Shape('baremetal-arm', 128, 512 << 10, 1920, 'aarch64')

#: The shapes of the nodes of a lab, in turn.
MIXED: Sequence[Shape] = (
    USUAL, _ROOMY, _QUICK, USUAL, _LARGE, _ROOMY, _QUICK, _ARM, USUAL, _ROOMY)
#: For measurements: each node can have each server.
ALIKE: Sequence[Shape] = (USUAL,)

#: What each flavor asks for, by the name of the flavor: its resource class.
FLAVORS: Mapping[str, Shape] = {
    shape.resource_class: shape for shape in (USUAL, _LARGE, _ARM)}


def of(number: int, shapes: Sequence[Shape] = MIXED) -> Shape:
    """Return the shape of a node.

    :param number: the node's number, from 1
    :param shapes: those of the lab
    """
    return shapes[(number - 1) % len(shapes)]
