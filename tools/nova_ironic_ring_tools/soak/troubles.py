# SPDX-License-Identifier: Apache-2.0

"""Times in which what services ask is silent, or its answers are lost."""

from collections.abc import Callable
import threading

from nova_ironic_ring.lab.inside import lost
from nova_ironic_ring_tools.faults import silences
from nova_ironic_ring_tools.soak import world as worlds

# For how long, in seconds. Nova itself waits for a minute for an answer.
_SECONDS = (20.0, 55.0)
_SHARE = 0.3


def be_silent(world: worlds.World) -> str | None:
    """Freeze something that services ask.

    :param world: the lab
    :returns: a text for it; None if there is such a time already
    """
    silence = world.chance.choice(silences.SILENCES)
    return _begin(world, silence.name,
                  lambda: silences.pause(world.lab, silence),
                  lambda: silences.resume(world.lab, silence))


def lose_answers(world: worlds.World) -> str | None:
    """Lose some answers of Placement and conductor to what was written.

    :param world: the lab
    :returns: a text for it; None if there is such a time already
    """
    directory = world.lab.state.directory
    return _begin(world, 'answers lost', lambda: lost.lose(directory, _SHARE),
                  lambda: lost.lose(directory, 0))


def _begin(world: worlds.World, what: str, begin: Callable[[], None],
           end: Callable[[], None]) -> str | None:
    """Begin such a time, which ends by itself.

    In a thread: what the soak asks for meanwhile waits as well.
    """
    if world.trouble.is_alive():
        return None
    seconds = world.chance.uniform(*_SECONDS)
    world.trouble = threading.Timer(seconds, end)
    world.trouble.daemon = True
    begin()
    world.trouble.start()
    return f'{what} for {seconds:.0f} s'
