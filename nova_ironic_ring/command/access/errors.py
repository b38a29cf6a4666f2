# SPDX-License-Identifier: Apache-2.0

"""Errors of the command, for the one who has typed it."""


class CommandError(Exception):
    """The command could not do what it was told; says what to do instead."""


class RefusedError(CommandError):
    """Nothing that was told can be done, and not only this one thing."""
