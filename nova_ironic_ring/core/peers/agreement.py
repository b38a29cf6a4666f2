# SPDX-License-Identifier: Apache-2.0

"""Whether the services of one scope acknowledge the same ring.

For some passes after each change of the members they do not. If they differ
for longer, their options differ, and no node goes from one to the other.
"""

from collections.abc import Mapping
import dataclasses

from nova_ironic_ring.core.peers import membership
from nova_ironic_ring.core.peers import view
from nova_ironic_ring.core.values import settings


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The services that acknowledge another ring than this one.

    :ivar since: since when each does, in seconds, by canonical name; until it
        acknowledges the same ring, lives no longer, or has another scope
    :ivar lasting: those of them that have done so for too long
    """

    since: Mapping[str, float] = dataclasses.field(default_factory=dict)
    lasting: frozenset[str] = frozenset()

    def restarted(self) -> 'Agreement':
        """Return this as if each service was first seen to differ now.

        What this service saw, or said, was out of date.
        """
        return dataclasses.replace(self, since={})

    def look(self, known: view.View, at: float, cycle: float,
             current: settings.Settings) -> 'Agreement':
        """Return the agreement after one more look.

        A service that acknowledges no ring now is as it was before.

        :param known: what this service knows of the others
        :param at: when it looks, in seconds
        :param cycle: seconds from the start of a pass to that of the next one
        :param current: this service's settings
        """
        since, ring = {}, known.ring.fingerprint(current.scope)
        for service in known.services.values():
            name, said = service.name, service.said
            if name == current.me or said is None or (
                    known.state(name) not in _DIVIDING) or (
                    said.last_pass is None
                    or not current.scope.is_same(said.scope)):
                continue
            before = self.since.get(name)
            was = before is not None or name in self.lasting
            if (was if said.ring is None
                    else not said.consents(ring, current.scope)):
                since[name] = at if before is None else before
        return Agreement(since, frozenset(
            service.name for service in known.services.values()
            if service.name in since and service.last_pass is not None
            and (service.name in self.lasting or at - since[service.name]
                 >= max(current.handover_timeout, membership.PATIENT_PASSES
                        * max(cycle, service.last_pass.cycle)))))


#: What services are that divide the nodes of one scope.
_DIVIDING = (membership.State.MEMBER, membership.State.NOT_A_PEER)
