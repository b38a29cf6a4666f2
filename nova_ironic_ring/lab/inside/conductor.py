# SPDX-License-Identifier: Apache-2.0

"""nova-conductor, whose answers to nova-compute can be lost."""

# The first of Nova's: it prepares Python for threads.
from nova.cmd import conductor
from nova import service

if __name__ == '__main__':
    service.SERVICE_MANAGERS['nova-conductor'] = (
        'nova_ironic_ring.lab.inside.conductor_manager.LosingManager')
    conductor.main()
