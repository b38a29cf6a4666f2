# SPDX-License-Identifier: Apache-2.0

"""The repositories that devstack clones."""

import pathlib
import shutil

from nova_ironic_ring_tools.devstack import commands
from nova_ironic_ring_tools.devstack import container
from nova_ironic_ring_tools.devstack import errors
from nova_ironic_ring_tools.devstack import settings

#: The projects that a devstack with ironic needs.
PROJECTS = ('devstack', 'requirements', 'keystone', 'glance', 'neutron',
            'placement', 'nova', 'ironic')
#: The branch with the commit that is checked out here.
BRANCH = 'checkout'

_INSIDE = pathlib.PurePosixPath('/opt/git')
_OWN = 'nova-ironic-ring'


def own() -> str:
    """Return where the container has the clone of this checkout."""
    return str(_INSIDE / f'{_OWN}.git')


def give(box: container.Container, sources: settings.Sources) -> str:
    """Copy repositories into a container, if they are on this machine.

    They are copied as they are, because the container's user may not be
    allowed to read them, and because a clone of a partial clone is not whole.

    :param box: the container
    :param sources: where the repositories are
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
            # One that was interrupted has another name.
            part = target.with_suffix('.part')
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(found, part)
            _open(part)
            part.rename(target)
    return str(_INSIDE)


def _outside(box: container.Container) -> pathlib.Path:
    """Return where this machine sees the container's repositories."""
    return box.root / _INSIDE.relative_to('/')


def _find(folder: pathlib.Path, project: str, branch: str) -> pathlib.Path:
    """Return the git directory of a project."""
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
    """Copy the commits of this checkout into a container.

    :param box: the container
    :param checkout: the directory of this checkout
    :raises DevstackError: if it is no checkout
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
    """Return whether a checkout has changes that are not committed.

    :param checkout: this checkout
    """
    return bool(commands.run('git', '-c', 'safe.directory=*', '-C',
                             str(checkout), 'status', '--porcelain'))
