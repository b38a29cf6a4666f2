# SPDX-License-Identifier: Apache-2.0

"""What the plugin leaves after unstack.sh and clean.sh.

At its end clean.sh deletes /etc/nova, whatever the plugins have deleted. So a
hook of devstack looks before that. It deletes all units of services as well,
which the plugin leaves to it.
"""

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import furniture

# Devstack sources the files of this directory after the phases of the plugins.
_HOOK = furniture.DEVSTACK / 'extras.d/99-nova-ironic-ring-leftovers.sh'
_SEEN = container.HOME / 'nova-ironic-ring-leftovers'
# Of the first service, devstack's own, the plugin has no file.
_FILES = '/etc/nova/nova-cpu-*'
_UNITS = ('etc/systemd/system/devstack@n-cpu*',
          'etc/systemd/system/*/devstack@n-cpu*')


def watch(box: container.Container) -> None:
    """Have clean.sh note what the plugin has left.

    :param box: the container
    """
    (box.root / _SEEN.relative_to('/')).unlink(missing_ok=True)
    box.write(str(_HOOK.relative_to('/')), (
        'if [[ $1 == clean ]]; then\n'
        f'    compgen -G "{_FILES}" > {_SEEN} || true\n'
        'fi\n'))


def found(box: container.Container) -> list[str]:
    """Return what the plugin has left, as :func:`watch` had it noted.

    :param box: the container
    :returns: files, and command lines of processes
    :raises DevstackError: if clean.sh did not come so far
    """
    seen = box.root / _SEEN.relative_to('/')
    if not seen.exists():
        raise errors.DevstackError('clean.sh has not cleaned the plugins.')
    units = [f'/{path.relative_to(box.root)}' for pattern in _UNITS
             for path in sorted(box.root.glob(pattern))]
    processes = box.root_run('ps', '-e', '-o', 'args=').splitlines()
    return seen.read_text().splitlines() + units + [
        args for args in processes if 'nova-compute' in args]
