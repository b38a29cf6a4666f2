# SPDX-License-Identifier: Apache-2.0

"""The steps of a pass that depend on what a place, a compute node, is.

With the ring driver a place is a node, with the pool driver a pool of nodes.
"""

from collections.abc import Sequence
import dataclasses
from typing import Generic
from typing import Protocol
from typing import TypeVar

from nova_ironic_ring.core.deciding import events
from nova_ironic_ring.core.looking import listing
from nova_ironic_ring.core.looking import one_pass
from nova_ironic_ring.core.looking import own_work
from nova_ironic_ring.core.peers import observation
from nova_ironic_ring.core.values import model
from nova_ironic_ring.core.values import ports


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a pass, or of a look between two passes.

    :ivar memory: what is to be remembered
    :ivar taken: the instances that this service has taken over
    :ivar happened: the events for the log
    :ivar before: what was remembered when it began
    """

    memory: observation.Memory = dataclasses.field(
        default_factory=observation.Memory)
    taken: Sequence[model.Takeover] = ()
    happened: Sequence[events.Event] = ()
    before: observation.Memory = dataclasses.field(
        default_factory=observation.Memory, kw_only=True)


class Remembering(Protocol):
    """Whoever remembers something for a service; a memory itself does."""

    @property
    def memory(self) -> observation.Memory:
        """What is remembered now."""


@dataclasses.dataclass(frozen=True)
class PassResult(Result):
    """The result of a pass.

    :ivar orphans: instances of others, or of nobody, on nodes that are for
        this service
    :ivar work: what this service says of its passes
    """

    orphans: frozenset[str] = frozenset()
    work: own_work.Work = own_work.Work()


@dataclasses.dataclass(frozen=True)
class ReactionResult(Result):
    """The result of a look between two passes.

    :ivar said: what this service's record says since then; None if the look
        has not written it
    """

    said: ports.Saying | None = None


@dataclasses.dataclass(frozen=True)
class ChangeResult(Result):
    """The result for nodes that have changed in Ironic between two passes.

    :ivar places: the compute nodes that Nova's resource tracker is to update:
        UUIDs of nodes, or names of pools
    :ivar nodes: the UUIDs of the nodes that this is for
    """

    places: Sequence[str] = ()
    nodes: Sequence[str] = ()


Seen = TypeVar('Seen')
Plan = TypeVar('Plan')
Passed = TypeVar('Passed', bound=PassResult)
Reacted = TypeVar('Reacted', bound=ReactionResult)


class Places(Generic[Seen, Plan, Passed, Reacted]):
    """The steps of a pass that differ between nodes and pools."""

    def look(self, this: one_pass.Pass, begun: listing.Beginning) -> Seen:
        """Read what the plan depends on.

        :param this: the pass
        :param begun: what was read already
        :raises one_pass.UnansweredError: if Nova or Ironic did not answer
        """
        raise NotImplementedError()

    def decide(self, this: one_pass.Pass, seen: Seen) -> Plan:
        """Plan what to do with each node.

        :param this: the pass
        :param seen: what was read
        """
        raise NotImplementedError()

    def take(self, this: one_pass.Pass, seen: Seen, plan: Plan) -> Passed:
        """Do what was planned, and write what others have to know.

        :param this: the pass
        :param seen: what was read
        :param plan: the plan
        :raises one_pass.UnansweredError: if Nova or Ironic did not answer
        """
        raise NotImplementedError()

    def react(self, this: one_pass.Pass,
              seen: observation.Observation | None) -> Reacted:
        """Do what does not wait for the next pass.

        :param this: the look between two passes
        :param seen: what was read of dead services; None if there is nothing
            to be taken over
        :raises one_pass.UnansweredError: if Nova did not answer
        """
        raise NotImplementedError()

    def change(self, this: one_pass.Pass, nodes: Sequence[str]
               ) -> ChangeResult:
        """Return what the tracker is to update, for nodes that have changed.

        :param this: what is done between two passes
        :param nodes: UUIDs of nodes
        :raises one_pass.UnansweredError: if Nova did not answer
        """
        raise NotImplementedError()
