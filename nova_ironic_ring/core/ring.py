# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The consistent-hash ring: which member each node is for."""

from collections.abc import Iterable, Iterator

from tooz import hashring


class Ring:
    """Maps nodes to members, the same on every service that builds it alike.

    A joining or leaving member moves only the nodes that it gains or loses.
    """

    def __init__(self, members: Iterable[str], partitions: int) -> None:
        """Build the ring.

        :param members: canonical host names
        :param partitions: points on the ring for each member
        """
        self.members = frozenset(members)
        self.partitions = partitions
        self._ring = hashring.HashRing(self.members, partitions=partitions)
        # A ring never changes, so that what it has answered once stays true.
        self._owners: dict[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ring) and (
            (self.members, self.partitions)
            == (other.members, other.partitions))

    def __hash__(self) -> int:
        return hash((self.members, self.partitions))

    def rebuilt(self, members: frozenset[str], partitions: int) -> 'Ring':
        """Return the ring of these members, which may be this very one.

        :param members: canonical host names
        :param partitions: points on the ring for each member
        """
        if (members, partitions) == (self.members, self.partitions):
            return self
        return Ring(members, partitions)

    def owner(self, node: str) -> str | None:
        """Return the desired owner of a node.

        :param node: the node's UUID
        :returns: the canonical host name of a member; None if the ring has no
            members
        """
        found = self._owners.get(node)
        if found is None and self.members:
            (found,) = self._ring.get_nodes(node.encode())
            self._owners[node] = found
        return found

    def successors(self, node: str) -> Iterator[str]:
        """Name those whom the node would go to, one after the other.

        :param node: the node's UUID
        :returns: the canonical host names of all members: the desired owner,
            then who is the desired owner if that one leaves, and so on
        """
        key = node.encode()
        passed: set[str] = set()
        while len(passed) < len(self.members):
            (successor,) = self._ring.get_nodes(key, ignore_nodes=passed)
            yield successor
            passed.add(successor)
