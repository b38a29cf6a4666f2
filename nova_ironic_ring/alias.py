# SPDX-License-Identifier: Apache-2.0

"""Where Nova finds the driver: ``nova.virt.ironic_ring``.

Nova imports a compute driver by a name under ``nova.virt``, which is a regular
package and so closed to other distributions. The file nova_ironic_ring.pth in
site-packages, or nova_ironic_ring.start, makes Python ask :func:`spec` for
that one name. Where neither is wanted, a module in nova/virt calls
:func:`fill` (nova_ironic_ring/module.py).
"""

from collections.abc import MutableMapping
import importlib.abc
import importlib.machinery
import importlib.util
import types
from typing import Any


class _Alias(importlib.abc.Loader):
    """Fills ``nova.virt.ironic_ring`` with the driver classes."""

    def exec_module(self, module: types.ModuleType) -> None:
        fill(vars(module))


def fill(namespace: MutableMapping[str, Any]) -> None:
    """Put the driver classes where Nova looks for them.

    :param namespace: the names of the module ``nova.virt.ironic_ring``
    :raises ImportError: if Nova lacks names that the driver uses, with all of
        them
    """
    try:
        from nova_ironic_ring.compute import driver
        from nova_ironic_ring.compute import pool_driver
    except (ImportError, AttributeError) as error:
        from nova_ironic_ring.adapters import names
        lacking = names.missing()
        if not lacking:
            raise
        # The error itself names the first that is not there.
        raise ImportError(
            names.refusal(names.release(), lacking)) from error
    namespace.update(
        IronicRingDriver=driver.IronicRingDriver, RingMixin=driver.RingMixin,
        IronicPoolDriver=pool_driver.IronicPoolDriver,
        PoolMixin=pool_driver.PoolMixin)


def spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Say how to load the module that Nova asks for.

    :param name: the module's full name
    :returns: a module spec for :func:`importlib.util.module_from_spec`
    """
    return importlib.util.spec_from_loader(name, _Alias(), origin=__file__)
