# SPDX-License-Identifier: Apache-2.0

"""Errors of the command, for its user."""


class CommandError(Exception):
    """The command has failed; the message says what to do instead."""


class RefusedError(CommandError):
    """No step of the command can be done, not only this one."""
