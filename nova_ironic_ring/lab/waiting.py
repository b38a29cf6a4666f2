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

"""Waits for something to become true."""

from collections.abc import Callable

import tenacity


def until(done: Callable[[], object], timeout: float, poll: float) -> bool:
    """Wait until something is true, and say whether it is.

    :param done: says whether it is true; what it raises ends the waiting
    :param timeout: seconds
    :param poll: seconds between two looks
    """
    try:
        tenacity.Retrying(
            retry=tenacity.retry_if_not_result(bool),
            stop=tenacity.stop_after_delay(timeout),
            wait=tenacity.wait_fixed(poll))(done)
    except tenacity.RetryError:
        return False
    return True
