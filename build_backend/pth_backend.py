# SPDX-License-Identifier: Apache-2.0

"""pbr's build backend, a .pth file in each wheel, and no tests in a release.

Nova imports a compute driver as ``nova.virt.<compute_driver>``. The file
``nova_ironic_ring.pth`` tells Python where that name is to be found (its own
comment says how). It has to lie in the root of site-packages, which setuptools
offers for neither a wheel nor an editable install. So the finished wheel, of
whichever kind, is given the file here, by the rules of the wheel format:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/

pbr puts all of a package into a wheel. Who runs the driver has no use for its
tests, which are left out here.
"""

import base64
import hashlib
import pathlib
import zipfile

from pbr import build as _pbr
from pbr.build import *  # noqa: F401,F403  the unchanged hooks

_PTH = pathlib.Path(__file__).parent / 'nova_ironic_ring.pth'
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


def _finish(wheel: pathlib.Path) -> None:
    """Add the .pth file to a wheel and its RECORD, and leave the tests out."""
    content = _PTH.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    record = '%s,sha256=%s,%d\n' % (
        _PTH.name, digest.decode().rstrip('='), len(content))

    # A zip file's members cannot be changed in place.
    rebuilt = wheel.with_suffix('.rebuilt')
    with (zipfile.ZipFile(wheel) as old,
          zipfile.ZipFile(rebuilt, 'w', zipfile.ZIP_DEFLATED) as new):
        # Readable for all, and the same whenever it is built.
        pth = zipfile.ZipInfo(_PTH.name)
        pth.external_attr = 0o100644 << 16
        pth.compress_type = zipfile.ZIP_DEFLATED
        new.writestr(pth, content)
        for member in old.infolist():
            if member.filename.startswith(_TESTS):
                continue
            data = old.read(member)
            if member.filename.endswith('.dist-info/RECORD'):
                data = b''.join(
                    line for line in data.splitlines(keepends=True)
                    if not line.startswith(_TESTS.encode()))
                data += record.encode()
            new.writestr(member, data)
    rebuilt.replace(wheel)
