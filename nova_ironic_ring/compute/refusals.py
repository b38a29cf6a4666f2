# SPDX-License-Identifier: Apache-2.0

"""Builds that were refused before anything was tried on a node."""

import threading


class Refusals(threading.local):
    """Knows whether the build that a thread goes on with was refused.

    Nova counts it among the failed builds of the compute node, and sends less
    builds there. But a pool that has no free node any more, or not the one
    that was named, has failed in nothing.

    :ivar is_refused: whether it was
    """

    is_refused = False
