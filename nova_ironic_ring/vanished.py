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

"""Whether nodes that are missing from Ironic are believed deleted."""

from collections.abc import Callable, Collection
import datetime
import itertools

#: So many may always go.
_HANDFUL = 5


class Guard:
    """Watches how many of a service's nodes vanish in some time."""

    def __init__(self) -> None:
        #: Whether none is believed deleted just now.
        self.closed = False
        self._deleted: dict[str, datetime.datetime] = {}

    def look(self, missing: Collection[str], total: int, limit: int,
             is_deleted: Callable[[str], bool], now: datetime.datetime,
             window: float) -> None:
        """Open or close.

        :param missing: the UUIDs of this service's nodes that were not listed;
            some may only have left the group that is listed
        :param total: how many nodes this service has
        :param limit: percent of them that may vanish
        :param is_deleted: says whether Ironic does not have a node; asked only
            where the missing ones are too many, and of no more than it takes
        :param now: the present time, with time zone
        :param window: seconds in which so many may vanish
        """
        self._deleted = {
            node: at for node, at in self._deleted.items()
            if (now - at).total_seconds() < window}
        before = self._deleted.keys() - missing
        allowed = max(_HANDFUL, (total + len(before)) * limit // 100)
        allowed = max(0, allowed - len(before))
        if len(missing) > allowed:
            gone = filter(is_deleted, missing)
            count = len(list(itertools.islice(gone, allowed + 1)))
            self.closed = count > allowed
        else:
            self.closed = False

    def note(self, node: str, now: datetime.datetime) -> None:
        """Remember that a node was believed deleted.

        :param node: its UUID
        :param now: the present time, with time zone
        """
        self._deleted[node] = now
