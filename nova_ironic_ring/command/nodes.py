# SPDX-License-Identifier: Apache-2.0

"""Chooses nodes by what there is to say of them."""

from collections.abc import Iterable
import dataclasses

from nova_ironic_ring.command import decisions
from nova_ironic_ring.command import errors
from nova_ironic_ring.command import overview
from nova_ironic_ring.command import snapshot
from nova_ironic_ring.core.deciding import decisions as core_decisions
from nova_ironic_ring.core.values import model


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which nodes are wanted; None for whatever it is.

    :ivar owner: the name of the service that they are recorded for
    :ivar state: the code of what that service is, in any case
    :ivar decision: the code of what is decided on them, in any case
    :ivar group: their conductor group, in any case; empty for none
    :ivar shard: their shard; empty for none
    :ivar to_move: whether only those that go to another service
    """

    owner: str | None = None
    state: str | None = None
    decision: str | None = None
    group: str | None = None
    shard: str | None = None
    to_move: bool = False

    def fits(self, node: snapshot.Node) -> bool:
        """Say whether Ironic has a node where it is wanted.

        :param node: the node
        """
        return (self.group is None
                or self.group.lower() == node.group.lower()) and (
            self.shard is None or self.shard == (node.shard or ''))

    def suits(self, story: decisions.Story) -> bool:
        """Say whether what there is to say of a node is wanted.

        :param story: that
        """
        owner = model.canonical(story.owner_name)
        return (self.owner is None
                or owner == model.canonical(self.owner)) and (
            self.state is None or (
                story.owner is not None
                and story.owner.code.name == self.state.upper())) and (
            self.decision is None
            or self.decision.upper() == story.code) and (
            story.is_to_move or not self.to_move)


def choose(seen: snapshot.Snapshot, wanted: Wanted) -> list[decisions.Story]:
    """Tell of the nodes that are wanted.

    :param seen: what was read
    :param wanted: which they are
    :returns: in the order of their names
    :raises ValueError: if the owner is no service at all
    :raises CommandError: if no node has the group, or the shard, that is
        named, or there is no such code
    """
    _see_code(wanted.state, overview.Code.__members__, 'state')
    _see_code(wanted.decision, [
        *core_decisions.Decision.__members__, decisions.COUNT,
        decisions.NONE], 'decision')
    _see(wanted.group and wanted.group.lower(),
         (node.group.lower() for node in seen.nodes.values()),
         'conductor group')
    _see(wanted.shard, (node.shard or '' for node in seen.nodes.values()),
         'shard')
    if wanted.owner is not None and (
            model.canonical(wanted.owner) not in seen.owners):
        seen.service(wanted.owner)
    teller = decisions.Teller(seen)
    told = (teller.tell(node) for node in sorted(
        seen.nodes.values(), key=lambda node: (node.name or '', node.uuid))
        if wanted.fits(node))
    return [story for story in told
            if seen.is_meant(story.cell) and wanted.suits(story)]


def _see_code(code: str | None, known: Iterable[str], what: str) -> None:
    """See that there is a code.

    :raises CommandError: if there is not
    """
    if code is not None and code.upper() not in known:
        raise errors.CommandError(
            f'There is no {what} "{code}": there are {", ".join(known)}.')


def _see(name: str | None, known: Iterable[str], what: str) -> None:
    """See that a name is known: a list without nodes may look like good news.

    That no node is in none is an answer.

    :raises CommandError: if it is not
    """
    names = sorted(set(known))
    if name and name not in names:
        raise errors.CommandError(
            f'Ironic has no node in {what} "{name}": there are '
            f'{", ".join(each or "nodes in none" for each in names)}.')
