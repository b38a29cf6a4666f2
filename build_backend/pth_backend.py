# SPDX-License-Identifier: Apache-2.0

"""pbr's build backend, with a .pth file in each wheel and no tests.

Nova imports a compute driver as ``nova.virt.<compute_driver>``. The file
``nova_ironic_ring.pth`` tells Python where that name is to be found (its own
comment says how), and ``nova_ironic_ring.start`` tells Python 3.15 and newer,
which shall ignore such lines in .pth files one day (PEP 829). Both have to lie
in the root of site-packages, which setuptools offers for neither a wheel nor
an editable install. So the finished wheel, of whichever kind, is given the
files here, by the rules of the wheel format:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/

pbr puts all of a package into a wheel. Who runs the driver has no use for its
tests, which are left out here.

With ``SOURCE_DATE_EPOCH`` in the environment, each build of a commit has the
same bytes (https://reproducible-builds.org/specs/source-date-epoch/).
setuptools sees to this for wheels. Source distributions are made so here.
"""

import base64
import gzip
import hashlib
import os
import pathlib
import tarfile
import zipfile

from pbr import build as _pbr
from pbr.build import *  # noqa: F401,F403  the unchanged hooks

_STARTERS = tuple(
    pathlib.Path(__file__).parent / f'nova_ironic_ring.{kind}'
    for kind in ('pth', 'start'))
_TESTS = 'nova_ironic_ring/tests/'


def build_wheel(wheel_directory, config_settings=None,
                metadata_directory=None):
    """See PEP 517."""
    name = _pbr.build_wheel(
        wheel_directory, config_settings, metadata_directory)
    _finish(pathlib.Path(wheel_directory, name))
    return name


def build_editable(wheel_directory, config_settings=None,
                   metadata_directory=None):
    """See PEP 660."""
    name = _pbr.build_editable(
        wheel_directory, config_settings, metadata_directory)
    _finish(pathlib.Path(wheel_directory, name))
    return name


def build_sdist(sdist_directory, config_settings=None):
    """See PEP 517."""
    name = _pbr.build_sdist(sdist_directory, config_settings)
    date = os.environ.get('SOURCE_DATE_EPOCH')
    if date:
        _make_reproducible(pathlib.Path(sdist_directory, name), int(date))
    return name


def _make_reproducible(sdist: pathlib.Path, date: int) -> None:
    """Leave nothing in a source distribution that only one build has.

    :param sdist: the .tar.gz file
    :param date: the date of the source, in seconds since 1970
    """
    rebuilt = sdist.with_suffix('.rebuilt')
    with (tarfile.open(sdist) as old, open(rebuilt, 'wb') as out,
          gzip.GzipFile('', 'wb', 9, out, date) as packed,
          tarfile.open(fileobj=packed, mode='w',
                       format=tarfile.PAX_FORMAT) as new):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            member.mtime = date
            member.uid = member.gid = 0
            member.uname = member.gname = ''
            member.mode = _mode(member.mode)
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member))
    rebuilt.replace(sdist)


def _mode(mode: int) -> int:
    """Return a file's mode as it is with every umask."""
    return 0o755 if mode & 0o100 else 0o644


def _record(name: str, content: bytes) -> str:
    """Return the line of a file in a wheel's RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return '%s,sha256=%s,%d\n' % (
        name, digest.decode().rstrip('='), len(content))


def _finish(wheel: pathlib.Path) -> None:
    """Add both files to a wheel and its RECORD, and leave the tests out."""
    added = {path.name: path.read_bytes() for path in _STARTERS}
    record = ''.join(_record(*each) for each in added.items())

    # A zip file's members cannot be changed in place.
    rebuilt = wheel.with_suffix('.rebuilt')
    with (zipfile.ZipFile(wheel) as old,
          zipfile.ZipFile(rebuilt, 'w', zipfile.ZIP_DEFLATED) as new):
        for name, content in added.items():
            # Readable for all, and the same whenever it is built.
            starter = zipfile.ZipInfo(name)
            starter.external_attr = 0o100644 << 16
            starter.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(starter, content)
        for member in old.infolist():
            if member.filename.startswith(_TESTS):
                continue
            data = old.read(member)
            if member.filename.endswith('.dist-info/RECORD'):
                data = b''.join(
                    line for line in data.splitlines(keepends=True)
                    if not line.startswith(_TESTS.encode()))
                data += record.encode()
            mode = _mode(member.external_attr >> 16)
            member.external_attr = (0o100000 | mode) << 16
            new.writestr(member, data)
    rebuilt.replace(wheel)
