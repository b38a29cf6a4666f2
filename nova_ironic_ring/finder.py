# SPDX-License-Identifier: Apache-2.0

"""Makes Python find ``nova.virt.ironic_ring``, from a ``.start`` file.

Python 3.15 and newer call :func:`install` at each start, because
nova_ironic_ring.start in site-packages names it (PEP 829). Older ones run the
line in nova_ironic_ring.pth, which does the same and imports nothing. So this
module imports no other one before Nova wants the driver.
"""

import sys

# As in typing, which is not to be imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    import importlib.machinery
    import types

#: Where Nova looks for the driver.
NAME = 'nova.virt.ironic_ring'


class NovaIronicRingFinder:
    """Finds that one module, when no other finder has found it."""

    @staticmethod
    def find_spec(name: str, path: 'Sequence[str] | None' = None,
                  target: 'types.ModuleType | None' = None
                  ) -> 'importlib.machinery.ModuleSpec | None':
        """Say how to load a module.

        :param name: its full name
        :param path: not needed
        :param target: not needed
        :returns: None for all other modules
        """
        if name != NAME:
            return None
        from nova_ironic_ring import alias
        return alias.spec(name)


def install() -> None:
    """Add the finder to those that Python asks, as the last one.

    Does nothing if the line of the .pth file has done so, or another call.
    """
    if not any(getattr(each, '__name__', None) == NovaIronicRingFinder.__name__
               for each in sys.meta_path):
        sys.meta_path.append(NovaIronicRingFinder)
