# SPDX-License-Identifier: Apache-2.0

"""Writes a plain module into nova/virt, for those who want no ``.pth`` file.

Run with the Python of nova-compute::

    python3 -m nova_ironic_ring.module install
    python3 -m nova_ironic_ring.module remove

The module is nova/virt/ironic_ring.py, which Python then finds as any other
module of Nova.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import importlib.util
import os
import pathlib
import sys
import tempfile

#: Exit statuses: done, could not.
DONE, FAILED = 0, 2

_FILE = 'ironic_ring.py'
# Each release begins its module with this line, and knows by it that it may
# replace or delete the file.
_MARK = '# Written by "python3 -m nova_ironic_ring.module install".\n'
_MODULE = _MARK + '''\
# To delete it: python3 -m nova_ironic_ring.module remove

"""The drivers of nova-ironic-ring, where Nova looks for them."""

from nova_ironic_ring import alias

alias.fill(globals())
'''


class ModuleError(Exception):
    """Says in one sentence what cannot be done, and what to do."""


def find() -> pathlib.Path:
    """Return Nova's own directory of drivers.

    :returns: nova/virt of the Nova that this Python would import
    :raises ModuleError: if there is none
    """
    nova = importlib.util.find_spec('nova')
    if nova is None or not nova.submodule_search_locations:
        raise ModuleError(
            f'{sys.executable} finds no Nova: run this with the Python of '
            'nova-compute, or name the directory nova/virt with --to.')
    return pathlib.Path(list(nova.submodule_search_locations)[0], 'virt')


def install(virt: pathlib.Path) -> str:
    """Write the module, unless it is there.

    :param virt: the directory nova/virt
    :returns: a sentence that says what was done
    :raises ModuleError: if that is another directory, has such a module of
        somebody else, or cannot be written to
    """
    path = _path(virt)
    if _read(path) == _MODULE:
        return f'{path} is there already.'
    # Whoever reads it meanwhile gets either all of it or nothing.
    with _changing(path, 'written'), tempfile.NamedTemporaryFile(
            'w', dir=virt, prefix='.ironic_ring-', delete=False) as file:
        try:
            file.write(_MODULE)
            file.flush()
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    return f'{path} is written.'


def remove(virt: pathlib.Path) -> str:
    """Delete the module, if it is there.

    :param virt: the directory nova/virt
    :returns: a sentence that says what was done
    :raises ModuleError: if that is another directory, has such a module of
        somebody else, or cannot be written to
    """
    path = _path(virt)
    if _read(path) is None:
        return f'There is no {path}.'
    with _changing(path, 'deleted'):
        path.unlink()
        # What Pythons have made of it.
        for compiled in virt.glob('__pycache__/ironic_ring.*.pyc'):
            compiled.unlink()
    return f'{path} is deleted.'


@contextlib.contextmanager
def _changing(path: pathlib.Path, change: str) -> Iterator[None]:
    """Say in one sentence why the module cannot be changed.

    :param path: the module
    :param change: what cannot be done to it, as "written"
    :raises ModuleError: if the system refuses
    """
    try:
        yield
    except OSError as error:
        raise ModuleError(f'{path} cannot be {change} ({error.strerror}): run '
                          'this as the owner of the directory.') from error


def _path(virt: pathlib.Path) -> pathlib.Path:
    """Return the path of the module in a directory that is nova/virt."""
    if not (virt / 'driver.py').is_file():
        raise ModuleError(f'{virt} has no driver.py, so it is not the '
                          'directory nova/virt of a Nova: name that with '
                          '--to.')
    return virt / _FILE


def _read(path: pathlib.Path) -> str | None:
    """Return the module that is there.

    :returns: None if there is none
    :raises ModuleError: if it is not this project's, or cannot be read
    """
    if not os.path.lexists(path):
        return None
    try:
        found = path.read_bytes().decode(errors='replace')
    except OSError as error:
        raise ModuleError(f'{path} cannot be read ({error.strerror}): move it '
                          'away, if nothing needs it.') from error
    if path.is_symlink() or not found.startswith(_MARK):
        raise ModuleError(f'{path} was not written by this command: move it '
                          'away, if nothing needs it.')
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :param argv: its arguments; None for those of the process
    :returns: the exit status
    """
    parser = argparse.ArgumentParser(
        prog='python3 -m nova_ironic_ring.module',
        description='Write a module into nova/virt in which Nova finds the '
                    'drivers without a .pth or .start file, or delete it. '
                    'Exits with 0 when done, 2 after a failure.')
    parser.add_argument('action', choices=('install', 'remove'))
    parser.add_argument(
        '--to', type=pathlib.Path, metavar='DIR',
        help='the directory nova/virt (default: that of the Nova which this '
             'Python imports)')
    options = parser.parse_args(argv)
    act = install if options.action == 'install' else remove
    try:
        print(act(options.to or find()))
    except ModuleError as error:
        print(error, file=sys.stderr)
        return FAILED
    return DONE


if __name__ == '__main__':
    sys.exit(main())
