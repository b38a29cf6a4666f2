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

from collections.abc import Callable, Iterable
import itertools

#: So many may always go at once.
_HANDFUL = 5


def is_too_many(missing: Iterable[str], total: int, limit: int,
                is_deleted: Callable[[str], bool]) -> bool:
    """Say whether more nodes have vanished than are believed deleted.

    :param missing: the UUIDs of this service's nodes that were not listed;
        some may only have left the group that is listed
    :param total: how many nodes this service has
    :param limit: percent of them that may vanish at once
    :param is_deleted: says whether Ironic does not have a node; asked only
        where the missing ones are too many, and of no more than it takes
    """
    missing = list(missing)
    allowed = max(_HANDFUL, total * limit // 100)
    if len(missing) <= allowed:
        return False
    gone = filter(is_deleted, missing)
    return len(list(itertools.islice(gone, allowed + 1))) > allowed
