# SPDX-License-Identifier: Apache-2.0

"""The directories of labs.

tools/lab imports this before it installs anything, so this module imports
nothing but Python's standard library.
"""

import fcntl
import getpass
import os
import pathlib
import stat

from nova_ironic_ring.lab import errors

#: The lab that is meant when none is named.
DEFAULT_NAME = 'lab'


def labs() -> pathlib.Path:
    """Return the directory of all labs of this user.

    Its path is short, because MariaDB's socket is below it, and the path of a
    socket must not be long.

    :raises LabError: if TMPDIR cannot be used, or if other users can read or
        write the directory: the lab runs programs from it
    """
    # Not tempfile.gettempdir(): a test may have changed what it returns.
    root = pathlib.Path(os.environ.get('TMPDIR') or '/tmp')
    if not root.is_dir() or ' ' in str(root):
        raise errors.LabError(
            f'TMPDIR is "{root}": set it to a directory that exists and has '
            'no blanks in its path, which MariaDB cannot have.')
    path = root / f'nova-ironic-ring-{getpass.getuser()}'
    try:
        found = path.lstat()
    except FileNotFoundError:
        return path
    if (not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid()
            or found.st_mode & 0o077):
        raise errors.LabError(
            f'{path} is not a directory of yours alone: remove it, or set '
            'TMPDIR to a directory of your own.')
    return path


def directory(name: str) -> pathlib.Path:
    """Return the directory of a lab.

    :param name: the lab's name
    :raises LabError: as :func:`labs`
    """
    return labs() / name


def make(path: pathlib.Path) -> int:
    """Make the directory of a lab, and lock it until this process ends.

    :param path: the directory
    :returns: the file descriptor that holds the lock
    :raises LabError: if it cannot be made
    """
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise errors.LabError(
            f'Cannot make {path} for the lab: {error}.') from error
    held = lock(path)
    assert held is not None  # a new directory is nobody else's
    return held


def lock(path: pathlib.Path) -> int | None:
    """Lock a directory until this process ends.

    :param path: the directory
    :returns: the file descriptor that holds the lock, or None if another
        process has it
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
