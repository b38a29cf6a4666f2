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

    def owner(self, node: str) -> str:
        """Return the desired owner of a node.

        :param node: the node's UUID
        :returns: the canonical host name of a member
        :raises ValueError: if the ring has no members
        """
        for owner in self.successors(node):
            return owner
        raise ValueError('a ring without members has no owners')

    def successors(self, node: str) -> Iterator[str]:
        """Name those whom the node would go to, one after the other.

        :param node: the node's UUID
        :returns: the canonical host names of all members: the desired owner,
            then who is if that one leaves, and so on
        """
        key = node.encode()
        passed: set[str] = set()
        while len(passed) < len(self.members):
            (successor,) = self._ring.get_nodes(key, ignore_nodes=passed)
            yield successor
            passed.add(successor)
