# SPDX-License-Identifier: Apache-2.0

"""Conductors for conductor groups, and nodes in them.

Devstack starts one conductor, in the default group.
"""

from collections.abc import Sequence

from nova_ironic_ring_tools.devstack import cloud as clouds
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import furniture

_CONF = 'etc/ironic/conductor-{number}.conf'
_UNIT = 'nova-ironic-ring-conductor-{number}'
_TEXT = """\
[DEFAULT]
host = conductor-{number}

[conductor]
conductor_group = {group}
"""
# Seconds.
_TIMEOUT = 120


def start(cloud: clouds.Cloud, groups: Sequence[str]) -> None:
    """Start a conductor for each group, and divide the nodes among them.

    :param cloud: the cloud
    :param groups: their names; empty for the default group
    :raises DevstackError: if they do not come up
    """
    stop(cloud.box)
    for number, group in enumerate(groups, 1):
        if group:
            _start(cloud.box, number, group)
    clouds.until('each conductor group has a conductor', _TIMEOUT,
                 lambda: set(groups) <= _served(cloud))
    nodes = sorted(node['uuid'] for node in cloud.baremetal('node'))
    for index, node in enumerate(nodes):
        cloud.do('baremetal', 'node', 'set', node, '--conductor-group',
                 groups[index % len(groups)], system=True)


def _start(box: container.Container, number: int, group: str) -> None:
    """Start a conductor, which runs until the container halts."""
    conf = _CONF.format(number=number)
    box.write(conf, _TEXT.format(number=number, group=group))
    box.root_run(
        'systemd-run', '--quiet', f'--unit={_UNIT.format(number=number)}',
        f'--uid={container.USER}',
        f'--setenv=PATH={furniture.PROGRAMS}:/usr/bin:/bin',
        str(furniture.PROGRAMS / 'ironic-conductor'), '--config-file',
        '/etc/ironic/ironic.conf', '--config-file', f'/{conf}')


def _served(cloud: clouds.Cloud) -> set[str]:
    """Return the groups that have a conductor that is alive."""
    return {conductor['conductor_group']
            for conductor in cloud.baremetal('conductor')
            if conductor['alive']}


def stop(box: container.Container) -> None:
    """Stop the conductors that :func:`start` has started, if there are any.

    :param box: the container
    """
    for verb in 'stop', 'reset-failed':
        box.root_run('systemctl', verb, _UNIT.format(number='*'))
