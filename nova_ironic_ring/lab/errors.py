# SPDX-License-Identifier: Apache-2.0

"""What can go wrong in the lab, said in one sentence."""


class LabError(Exception):
    """A fault that the user is told of without a traceback.

    The message says what went wrong, where, and what to do.
    """
