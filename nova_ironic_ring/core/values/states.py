# SPDX-License-Identifier: Apache-2.0

"""What Ironic's provision states mean for a server on the node.

The table is complete for Ironic 39. Nothing is concluded from a state of a
later release: such a node counts as being changed.
"""

import enum


class Meaning(enum.Enum):
    """What a provision state means for a server on the node.

    :cvar FREE: there is none, and one can be built
    :cvar NONE: there is none, and none can be built
    :cvar CHANGES: Ironic deploys, rescues or tears down the machine, until
        that is done, has failed or has taken too long for Ironic
    :cvar RUNS: the machine is the server's, which may switch it on and off
    :cvar SERVICED: the same, but an operator has Ironic at work on it, for
        instance on its firmware: nothing else may switch it
    :cvar RESCUED: the machine is in rescue mode
    :cvar FAILED: Ironic cannot say that the server is usable
    """

    FREE = enum.auto()
    NONE = enum.auto()
    CHANGES = enum.auto()
    RUNS = enum.auto()
    SERVICED = enum.auto()
    RESCUED = enum.auto()
    FAILED = enum.auto()

    @property
    def is_under_way(self) -> bool:
        """Whether the state is to be waited out."""
        return self in (Meaning.CHANGES, Meaning.SERVICED)


_STATES = {
    Meaning.FREE: ('available', None),
    Meaning.NONE: (
        'enroll', 'verifying', 'manageable', 'inspecting', 'inspect wait',
        'inspect failed', 'deleted', 'cleaning', 'clean wait', 'clean hold',
        'clean failed'),
    Meaning.CHANGES: (
        'deploying', 'wait call-back', 'deploy hold', 'deleting', 'rescuing',
        'rescue wait', 'unrescuing', 'adopting'),
    # After a service that has failed, the disks are the server's all the same.
    Meaning.RUNS: ('active', 'deploy complete', 'service failed'),
    Meaning.SERVICED: ('servicing', 'service wait', 'service hold'),
    Meaning.RESCUED: ('rescue',),
    Meaning.FAILED: ('deploy failed', 'error', 'rescue failed',
                     'unrescue failed', 'adopt failed')}
#: By Ironic's name of the state.
MEANINGS = {state: meaning for meaning, states in _STATES.items()
            for state in states}


def meaning(state: str | None) -> Meaning:
    """Return what a provision state means.

    :param state: as Ironic has it
    """
    return MEANINGS.get(state, Meaning.CHANGES)
