# SPDX-License-Identifier: Apache-2.0

"""What the plugin leaves after unstack.sh and clean.sh.

At its end clean.sh deletes /etc/nova and all units of devstack, whatever the
plugins have deleted. So a hook of devstack looks before that.
"""

from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import furniture

# Devstack sources the files of this directory after the phases of the plugins.
_HOOK = furniture.DEVSTACK / 'extras.d/99-nova-ironic-ring-leftovers.sh'
_SEEN = container.HOME / 'nova-ironic-ring-leftovers'
# Of the first service, devstack's own, the plugin has no file.
_PATTERNS = ('etc/nova/nova-cpu-*', 'etc/systemd/system/devstack@n-cpu-*',
             'etc/systemd/system/*/devstack@n-cpu-*')


def watch(box: container.Container) -> None:
    """Have clean.sh note what the plugin has left.

    :param box: the container
    """
    (box.root / _SEEN.relative_to('/')).unlink(missing_ok=True)
    looks = ''.join(f'    compgen -G "/{pattern}" >> {_SEEN} || true\n'
                    for pattern in _PATTERNS)
    box.write(str(_HOOK.relative_to('/')), (
        f'if [[ $1 == clean ]]; then\n    : > {_SEEN}\n{looks}fi\n'))


def found(box: container.Container) -> list[str]:
    """Return what the plugin has left, as :func:`watch` had it noted.

    :param box: the container
    :returns: files, and command lines of processes
    :raises DevstackError: if clean.sh did not come so far
    """
    seen = box.root / _SEEN.relative_to('/')
    if not seen.exists():
        raise errors.DevstackError('clean.sh has not cleaned the plugins.')
    processes = box.root_run('ps', '-e', '-o', 'args=').splitlines()
    return seen.read_text().splitlines() + [
        args for args in processes if 'nova-compute' in args]
