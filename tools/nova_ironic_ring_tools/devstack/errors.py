# SPDX-License-Identifier: Apache-2.0

"""What can go wrong with a devstack in a container."""


class DevstackError(Exception):
    """A fault that the user is told of without a traceback.

    The message says what went wrong, where, and what to do.
    """
