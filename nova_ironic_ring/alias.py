# SPDX-License-Identifier: Apache-2.0

"""Where Nova finds the driver: ``nova.virt.ironic_ring``.

Nova imports a compute driver by a name under ``nova.virt``, which is a regular
package and so closed to other distributions. The file nova_ironic_ring.pth in
site-packages makes Python ask :func:`spec` for that one name.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import types


class _Alias(importlib.abc.Loader):
    """Fills ``nova.virt.ironic_ring`` with the driver classes."""

    def exec_module(self, module: types.ModuleType) -> None:
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
        module.IronicRingDriver = (  # type: ignore[attr-defined]
            driver.IronicRingDriver)
        module.RingMixin = (  # type: ignore[attr-defined]
            driver.RingMixin)
        module.IronicPoolDriver = (  # type: ignore[attr-defined]
            pool_driver.IronicPoolDriver)
        module.PoolMixin = (  # type: ignore[attr-defined]
            pool_driver.PoolMixin)


def spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Say how to load the module that Nova asks for.

    :param name: the module's full name
    :returns: a module spec for :func:`importlib.util.module_from_spec`
    """
    return importlib.util.spec_from_loader(name, _Alias(), origin=__file__)
