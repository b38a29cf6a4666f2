# SPDX-License-Identifier: Apache-2.0

"""Programs that measure the project, compare it, or draw what ran.

Each runs with ``python3 -m nova_ironic_ring_tools.<name>`` where this
directory's parent is on Python's path, as it is in tox's environments.
"""
