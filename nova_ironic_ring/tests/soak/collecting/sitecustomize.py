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

"""Has the process that imports it collect its garbage now and then.

Python imports a module of this name when it starts. The soak has the services
find it whose threads it counts: a looping call of oslo.service leaves a cycle
of objects behind, and in it a thread, which ends when Python collects all
garbage. A process of Nova's size seldom does so by itself.
"""

import gc
import threading
import time

# Seconds.
_INTERVAL = 20


def _collect() -> None:
    """Collect garbage until the process ends."""
    while True:
        time.sleep(_INTERVAL)
        gc.collect()


threading.Thread(target=_collect, name='collect', daemon=True).start()
