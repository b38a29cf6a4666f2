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

"""Builds that were refused before anything was tried on a node."""

import threading


class Refusals(threading.local):
    """Knows whether the build that a thread goes on with was refused.

    Nova counts it among the failed builds of the compute node, and sends less
    builds there. But a pool that has no free node any more, or not the one
    that was named, has failed in nothing.

    :ivar is_refused: whether it was
    """

    is_refused = False
