# SPDX-License-Identifier: Apache-2.0

"""Which member each shard of Ironic's nodes is for.

Each service writes into its rows which shards it holds, and all services deal
the shards by these rows. A member keeps what it holds, except for what exceeds
its share. Shards that nobody holds go by consistent hashing to members that
have room. So nobody gets more than the even share, rounded up, and no shard
moves unless it has to.
"""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import hashlib

#: Digits of a code.
CODE_LENGTH = 8


def code(shard: str) -> str:
    """Return the short code of a shard in a row.

    :param shard: its name
    :returns: eight hexadecimal digits
    """
    return hashlib.sha256(shard.encode()).hexdigest()[:CODE_LENGTH]


@dataclasses.dataclass(frozen=True)
class Deal:
    """The shards, and their holders as the members report them.

    :ivar names: the shards that nodes are in
    :ivar held: the codes of those that each member says it holds, by its
        canonical name
    """

    names: frozenset[str] = frozenset()
    held: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict)
    # A deal never changes, so its result stays true.
    _owners: dict[str, str] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False)

    @property
    def owners(self) -> Mapping[str, str]:
        """The canonical name of the member that each shard is for."""
        if not self._owners:
            names = {code(name): name for name in self.names}
            self._owners.update(deal(self.names, {
                member: frozenset(names[each] for each in held
                                  if each in names)
                for member, held in self.held.items()}))
        return self._owners

    def of(self, member: str) -> frozenset[str]:
        """Name the shards that are for a member.

        :param member: its canonical name
        """
        return frozenset(shard for shard, owner in self.owners.items()
                         if owner == member)

    def to_say(self, member: str) -> frozenset[str]:
        """Return the shards that a member is to report as held.

        It leaves out shards that are for it and that another reports as held:
        the other one lets go first. So the reports do not change the deal,
        whatever their order.

        :param member: its canonical name
        :returns: codes
        """
        mine = self.held.get(member, frozenset())
        others = frozenset[str]().union(*(
            held for other, held in self.held.items() if other != member))
        return frozenset(each for each in map(code, self.of(member))
                         if each in mine or each not in others)

    def among(self, members: Iterable[str]) -> 'Deal':
        """Return the deal with other members, who may hold nothing.

        :param members: their canonical names
        """
        return Deal(self.names, {
            member: self.held.get(member, frozenset()) for member in members})


def deal(names: Collection[str], held: Mapping[str, Collection[str]]
         ) -> dict[str, str]:
    """Deal shards to members.

    :param names: the shards
    :param held: those that each member holds, by its canonical name, also of
        members that hold none; who else holds something is no member
    :returns: the member of each shard; nothing if there are no members
    """
    if not held:
        return {}
    hands, loose = _hands(names, held)
    low, more = divmod(len(names), len(held))
    most = low + bool(more)

    def let_go(member: str, number: int) -> None:
        hand = hands[member]
        hand.sort(key=lambda shard: _rank(shard, member))
        loose.extend(hand[:number])
        del hand[:number]

    for member, hand in hands.items():
        if len(hand) > most:
            let_go(member, len(hand) - most)
    # Those that have too few get more from those that have the most.
    needed = sum(max(0, low - len(hand)) for hand in hands.values())
    rich = sorted((member for member, hand in hands.items()
                   if len(hand) > low), key=_rank)
    for member in rich[:max(0, needed - len(loose))]:
        let_go(member, 1)

    found = {shard: member for member, hand in hands.items()
             for shard in hand}
    for shard in sorted(loose, key=_rank):
        room = [member for member in hands if len(hands[member]) < low] or [
            member for member in hands if len(hands[member]) < most]
        member = max(room, key=lambda each: _rank(shard, each))
        hands[member].append(shard)
        found[shard] = member
    return found


def _hands(names: Collection[str], held: Mapping[str, Collection[str]]
           ) -> tuple[dict[str, list[str]], list[str]]:
    """Return what each member holds, and what nobody holds.

    If several report the same shard, because they did not see each other for a
    while, hashing chooses one.
    """
    holders: dict[str, list[str]] = {}
    for member, shards in held.items():
        for shard in shards:
            holders.setdefault(shard, []).append(member)
    hands: dict[str, list[str]] = {member: [] for member in sorted(held)}
    loose = []
    for shard in sorted(names):
        found = holders.get(shard)
        if found is None:
            loose.append(shard)
        else:
            hands[max(found, key=lambda each: _rank(shard, each))
                  if len(found) > 1 else found[0]].append(shard)
    return hands, loose


def _rank(*words: str) -> bytes:
    """Order things as if at random, but everywhere in the same way."""
    return hashlib.sha256('\n'.join(words).encode()).digest()
