# SPDX-License-Identifier: Apache-2.0

"""Makes a devstack with the driver in a container, and checks it.

Uses nothing but Python's standard library: it runs before anything is
installed.
"""
