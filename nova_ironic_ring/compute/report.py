# SPDX-License-Identifier: Apache-2.0

"""The section of Nova's Guru Meditation Report about the ring.

See https://docs.openstack.org/nova/latest/reference/gmr.html.
"""

import dataclasses

from oslo_reports.models import with_default_views

from nova_ironic_ring.compute import service


class Report(with_default_views.ModelWithDefaultViews):
    """The section."""


def make(ring: service.Service, recovering: int = 0) -> Report:
    """Return the section for a service.

    :param ring: the service
    :param recovering: the number of instances that it has taken over from dead
        services, and not recovered yet
    """
    memory = ring.memory
    return Report(data={
        'settings': (dataclasses.asdict(ring.settings)
                     if ring.has_settings else {}),
        'services': {host: state.value for host, state
                     in sorted(memory.view.peers.items())},
        'ring': {
            'members': ', '.join(sorted(
                memory.view.members)) or 'none',
            'partitions': memory.view.ring.partitions},
        'last pass': {
            'ended at': f'{ring.ended.at:%Y-%m-%d %H:%M:%S} UTC',
            'took': f'{ring.ended.seconds:.2f} s',
            **ring.summary(),
        } if ring.ended else {},
        'guards': {
            'trust': memory.view.trust.value,
            'too many nodes have vanished': (
                'yes' if memory.vanished.is_closed else 'no'),
            'another ring on': ', '.join(
                sorted(memory.agreement.lasting)) or 'no service',
        },
        'instances to recover': recovering,
    })
