# SPDX-License-Identifier: Apache-2.0

"""Tries the patches in ``contrib``, of Nova and Placement."""
