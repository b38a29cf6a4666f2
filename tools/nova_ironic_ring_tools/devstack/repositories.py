# SPDX-License-Identifier: Apache-2.0

"""The repositories that devstack clones."""

import pathlib
import shutil

from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import settings

#: What a devstack with ironic and no more is made of.
PROJECTS = ('devstack', 'requirements', 'keystone', 'glance', 'neutron',
            'placement', 'nova', 'ironic')
#: The branch that has what is checked out here.
BRANCH = 'checkout'

_INSIDE = pathlib.PurePosixPath('/opt/git')
_OWN = 'nova-ironic-ring'


def own() -> str:
    """Return where the container has the clone of this checkout."""
    return str(_INSIDE / f'{_OWN}.git')


def give(box: container.Container, sources: settings.Sources) -> str:
    """Give a container the repositories that this machine has for it.

    Those of a directory are copied: the container's user need not be allowed
    to read them, and clones of partial clones lack what is needed to serve
    them, but not what is checked out.

    :param box: the container
    :param sources: where they are
    :returns: the value of devstack's variable GIT_BASE
    :raises DevstackError: if a repository is missing, or its branch
    """
    folder = sources.folder
    if folder is None:
        return sources.git_base
    for project in PROJECTS:
        found = _find(folder / 'openstack', project, sources.branch)
        target = _outside(box) / 'openstack' / f'{project}.git'
        if not target.exists():
            shutil.copytree(found, target)
            _open(target)
    return str(_INSIDE)


def _outside(box: container.Container) -> pathlib.Path:
    """Return where this machine sees the container's repositories."""
    return box.root / _INSIDE.relative_to('/')


def _find(folder: pathlib.Path, project: str, branch: str) -> pathlib.Path:
    """Return the directory of git of a project."""
    for found in (folder / f'{project}.git', folder / project / '.git',
                  folder / project):
        if (found / 'HEAD').exists():
            break
    else:
        raise errors.DevstackError(
            f'GIT_BASE has no repository {folder / project}.git: clone it, '
            'or set GIT_BASE to another directory or an address.')
    try:
        commands.run('git', '-c', 'safe.directory=*', f'--git-dir={found}',
                     'rev-parse', '--verify', f'refs/heads/{branch}')
    except errors.DevstackError as error:
        raise errors.DevstackError(
            f'{found} has no branch {branch}: fetch it, or set '
            'DEVSTACK_BRANCH to one that all repositories have.') from error
    return found.resolve()


def _open(path: pathlib.Path) -> None:
    """Let everybody read what is in a directory."""
    for each in (path, *path.rglob('*')):
        each.chmod(0o755 if each.is_dir() else 0o644)


def give_own(box: container.Container, checkout: pathlib.Path) -> None:
    """Give a container what is committed in this checkout.

    :param box: the container
    :param checkout: this checkout
    :raises DevstackError: if this is none
    """
    target = _outside(box) / f'{_OWN}.git'
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    git = 'git', '-c', 'safe.directory=*'
    commands.run(*git, 'init', '--quiet', '--bare', str(target))
    commands.run(
        *git, '-C', str(checkout), 'push', '--quiet', '--tags', str(target),
        f'HEAD:refs/heads/{BRANCH}')
    _open(target)


def uncommitted(checkout: pathlib.Path) -> bool:
    """Say whether a checkout has changes that its clones will not have.

    :param checkout: this checkout
    """
    return bool(commands.run('git', '-c', 'safe.directory=*', '-C',
                             str(checkout), 'status', '--porcelain'))
