# SPDX-License-Identifier: Apache-2.0

"""Builds that were refused before anything was tried on a node."""

import threading


class Refusals(threading.local):
    """Knows whether the build that a thread does was refused.

    Nova counts a refused build among the failed builds of the compute node,
    and sends fewer builds there. But a pool has not failed if it has no free
    node left, or not the one that was named.

    :ivar is_refused: whether the build was refused
    """

    is_refused = False
