# SPDX-License-Identifier: Apache-2.0

"""Words for logs and for the output of the command."""


def of(count: int, one: str, more: str = '') -> str:
    """Return a number with its noun.

    :param count: the number
    :param one: what follows the number 1: a noun in the singular, with its
        verb where it has one
    :param more: what follows every other number; empty for ``one`` with an
        "s"
    :returns: such as "1 node", "2 nodes" and "0 nodes"
    """
    return f'{count} {one if count == 1 else more or f"{one}s"}'
