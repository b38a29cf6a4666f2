# SPDX-License-Identifier: Apache-2.0

"""Tries the patches of Nova in contrib/nova, and installs Nova with them.

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

from nova_ironic_ring_tools.patches import patch as nova_patch

#: The release that the patches are for, as pip names it.
_RELEASE = 'nova==34.*'
# The files of a patch that are its tests.
_TESTS = 'nova/tests/*'


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
    """Copy the source of Nova.

    :param source: a directory, an archive, or what pip can download
    :param where: an empty directory
    :returns: the directory of the copy
    :raises TryError: if the source cannot be copied
    """
    copy = where / 'nova'
    if os.path.isdir(source):
        shutil.copytree(source, copy, symlinks=True, ignore=(
            shutil.ignore_patterns('.tox', '.stestr', '*.pyc')))
        return copy
    if not os.path.isfile(source):
        _run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps',
              '--no-binary', 'nova', source], where)
        (found,) = where.iterdir()
        source = str(found)
    try:
        shutil.unpack_archive(source, copy)
    except (shutil.ReadError, OSError) as error:
        raise TryError(f'{source} is no archive: {error}') from error
    # An archive has one directory in it.
    (found,) = copy.iterdir()
    return found


def apply(patch: nova_patch.Patch, tree: pathlib.Path, only: str) -> None:
    """Apply a part of a patch.

    :param patch: the patch
    :param tree: Nova's source
    :param only: git's option that chooses the part
    :raises TryError: if the patch does not fit
    """
    try:
        _run(['git', 'apply', only, str(patch.path)], tree,
             # The copy may be below a repository that is not Nova's.
             GIT_CEILING_DIRECTORIES=str(tree.parent))
    except TryError as error:
        raise TryError(f'{patch.path.name} does not apply. {error}') from error


def outcomes(patch: nova_patch.Patch, tree: pathlib.Path
             ) -> Mapping[str, bool]:
    """Run the tests that a patch adds.

    :param patch: the patch, whose tests are in the tree
    :param tree: Nova's source
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


def attempt(patch: nova_patch.Patch, tree: pathlib.Path) -> None:
    """Apply a patch, and check that its tests fail without its other part.

    :param patch: the patch
    :param tree: Nova's source, with the patches before this one
    :raises TryError: if one of its tests passes without it, or fails with it
    """
    for only, wanted, word in (
            (f'--include={_TESTS}', False, 'passes without'),
            (f'--exclude={_TESTS}', True, 'fails with')):
        apply(patch, tree, only)
        for test, is_passed in outcomes(patch, tree).items():
            if is_passed != wanted:
                raise TryError(f'{patch.path.name}: {test} {word} the patch.')
            case, name = test.split('.')[-2:]
            print(f'{patch.path.name[:4]}: {case}.{name} '
                  f'{"passes with" if wanted else "fails without"} it',
                  flush=True)


def main(arguments: Sequence[str]) -> int:
    """Try all patches, one after the other, and install Nova with them.

    :param arguments: of the command line
    :returns: the exit status: 1 if a patch does not apply, or does not do what
        it should
    """
    parser = argparse.ArgumentParser(
        'python3 -m nova_ironic_ring_tools.patches', description=__doc__)
    parser.add_argument(
        '--source', default=os.environ.get('NOVA_SOURCE') or _RELEASE,
        help='the source of Nova: a directory, an archive, or what pip can '
        f'download; by default NOVA_SOURCE, or {_RELEASE}')
    parser.add_argument('--no-install', action='store_true',
                        help='try the patches, and install nothing')
    chosen = parser.parse_args(arguments)
    try:
        patches = nova_patch.read_all()
        with tempfile.TemporaryDirectory(prefix='nova-patched-') as name:
            tree = fetch(chosen.source, pathlib.Path(name))
            for patch in patches:
                attempt(patch, tree)
            if not chosen.no_install:
                _run([sys.executable, '-m', 'pip', 'install', '--quiet',
                      str(tree)], tree)
                print('Nova is installed with these patches.', flush=True)
    except (TryError, nova_patch.PatchError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
