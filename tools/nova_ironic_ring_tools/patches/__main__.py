# SPDX-License-Identifier: Apache-2.0

"""Tries the patches in contrib, and installs their projects with them.

``python3 -m nova_ironic_ring_tools.patches``
"""

import argparse
from collections.abc import Mapping, Sequence
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from nova_ironic_ring_tools.patches import patch as patches

# The releases that the patches are for, as pip names them.
_RELEASES = {'nova': 'nova==34.*', 'placement': 'openstack-placement==16.*'}


class TryError(Exception):
    """A patch does not apply, or does not do what it should."""


def _run(argv: Sequence[str], where: pathlib.Path, **more: str) -> str:
    """Run a program.

    :param argv: the program and its arguments
    :param where: the directory that it runs in
    :param more: more variables of its environment
    :returns: what it has printed
    :raises TryError: if it fails
    """
    done = subprocess.run(
        argv, cwd=where, env={**os.environ, **more}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    if done.returncode:
        raise TryError(f'{" ".join(argv)} has failed:\n{done.stdout}')
    return done.stdout


def fetch(source: str, where: pathlib.Path) -> pathlib.Path:
    """Copy the source of a project.

    :param source: a directory, an archive, or what pip can download
    :param where: an empty directory
    :returns: the directory of the copy
    :raises TryError: if the source cannot be copied
    """
    copy = where / 'source'
    if os.path.isdir(source):
        shutil.copytree(source, copy, symlinks=True, ignore=(
            shutil.ignore_patterns('.tox', '.stestr', '*.pyc')))
        return copy
    if not os.path.isfile(source):
        _run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps',
              '--no-binary', 'nova,openstack-placement', source], where)
        (found,) = where.iterdir()
        source = str(found)
    try:
        shutil.unpack_archive(source, copy)
    except (shutil.ReadError, OSError) as error:
        raise TryError(f'{source} is no archive: {error}') from error
    # An archive has one directory in it.
    (found,) = copy.iterdir()
    return found


def apply(patch: patches.Patch, tree: pathlib.Path, only: str) -> None:
    """Apply a part of a patch.

    :param patch: the patch
    :param tree: the project's source
    :param only: git's option that chooses the part
    :raises TryError: if the patch does not fit
    """
    try:
        _run(['git', 'apply', only, str(patch.path)], tree,
             # The copy may be below another repository.
             GIT_CEILING_DIRECTORIES=str(tree.parent))
    except TryError as error:
        raise TryError(f'{patch.path.name} does not apply. {error}') from error


def outcomes(patch: patches.Patch, tree: pathlib.Path
             ) -> Mapping[str, bool]:
    """Run the tests that a patch adds.

    :param patch: the patch, whose tests are in the tree
    :param tree: the project's source
    :returns: whether each test has passed, by its full name
    :raises TryError: if a module cannot be imported, or lacks a test
    """
    passed: dict[str, bool] = {}
    path = os.pathsep.join([str(tree), *sys.path])
    for module, names in patch.tests.items():
        with tempfile.NamedTemporaryFile('r') as result:
            _run([sys.executable, '-W', 'ignore', '-m',
                  'nova_ironic_ring_tools.patches.outcomes', result.name,
                  module, *names], tree, PYTHONPATH=path,
                 # Python would use old bytecode of a module that the patch
                 # changes within a second and without changing its size.
                 PYTHONDONTWRITEBYTECODE='1')
            found = json.load(result)
        for name in names:
            if not any(each.endswith(f'.{name}') for each in found):
                raise TryError(f'{patch.path.name}: {module} has no {name}.')
        passed.update(found)
    return passed


def attempt(project: str, patch: patches.Patch, tree: pathlib.Path) -> None:
    """Apply a patch, and check that its tests fail without its other part.

    :param project: the name of its project
    :param patch: the patch
    :param tree: the project's source, with the patches before this one
    :raises TryError: if one of its tests passes without it, or fails with it
    """
    for only, wanted, word in (
            (f'--include={project}/tests/*', False, 'passes without'),
            (f'--exclude={project}/tests/*', True, 'fails with')):
        apply(patch, tree, only)
        for test, is_passed in outcomes(patch, tree).items():
            if is_passed != wanted:
                raise TryError(f'{patch.path.name}: {test} {word} the patch.')
            case, name = test.split('.')[-2:]
            print(f'{project} {patch.path.name[:4]}: {case}.{name} '
                  f'{"passes with" if wanted else "fails without"} it',
                  flush=True)


def _try(project: str, is_installed: bool) -> None:
    """Try the patches of a project, one after the other.

    :param project: its name
    :param is_installed: whether to install the project with them
    :raises TryError: if one does not apply, or does not do what it should
    :raises PatchError: if one is not well-formed
    """
    found = patches.read_all(project)
    source = os.environ.get(f'{project.upper()}_SOURCE') or _RELEASES[project]
    with tempfile.TemporaryDirectory(prefix=f'{project}-patched-') as name:
        tree = fetch(source, pathlib.Path(name))
        for patch in found:
            attempt(project, patch, tree)
        if is_installed:
            _run([sys.executable, '-m', 'pip', 'install', '--quiet',
                  str(tree)], tree)
            print(f'{project} is installed with these patches.', flush=True)


def main(arguments: Sequence[str]) -> int:
    """Try all patches, and install their projects with them.

    :param arguments: of the command line
    :returns: the exit status: 1 if a patch does not apply, or does not do what
        it should
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.patches', description=__doc__,
        epilog='NOVA_SOURCE and PLACEMENT_SOURCE name another source than '
        f'{" and ".join(_RELEASES.values())}: a directory, an archive, or '
        'what pip can download.')
    parser.add_argument('--no-install', action='store_true',
                        help='try the patches, and install nothing')
    chosen = parser.parse_args(arguments)
    try:
        for project in patches.PROJECTS:
            _try(project, not chosen.no_install)
    except (TryError, patches.PatchError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
