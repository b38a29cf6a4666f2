# SPDX-License-Identifier: Apache-2.0

"""Tries the patches of Nova in ``contrib/nova/patches``."""
