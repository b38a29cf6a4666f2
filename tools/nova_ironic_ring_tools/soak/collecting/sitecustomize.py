# SPDX-License-Identifier: Apache-2.0

"""Makes the process that imports it collect its garbage periodically.

Python imports a module of this name when it starts. The soak puts it on the
path of the services whose threads it counts: a looping call of oslo.service
leaves a cycle of objects behind. A thread in this cycle ends only when Python
collects all garbage, which a process of Nova's size seldom does by itself.
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
