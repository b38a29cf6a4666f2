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

"""SIGHUP, where oslo.service would end nova-compute instead of reloading."""

import signal
import threading
from types import FrameType

from oslo_config import cfg
from oslo_log import log as logging

from nova_ironic_ring import upstream

LOG = logging.getLogger(__name__)


def install(conf: cfg.ConfigOpts) -> None:
    """See to it that SIGHUP changes the mutable options.

    With eventlet, oslo.service does. On native threads it has no reload yet
    for a service that runs in the main process, as nova-compute does, and
    SIGHUP ends it.

    :param conf: the configuration to be changed
    """
    if not upstream.runs_on_threads():
        return
    if threading.current_thread() is not threading.main_thread():
        # Python sets handlers in no other. Nova starts its drivers in this.
        LOG.debug('SIGHUP is left as it is.')
        return

    def reload(number: int, frame: FrameType | None) -> None:
        # Not here: the signal may have come while a lock was held that this
        # would take.
        threading.Thread(target=_mutate, args=(conf,), daemon=True).start()

    signal.signal(signal.SIGHUP, reload)


def _mutate(conf: cfg.ConfigOpts) -> None:
    """Read the configuration files again."""
    LOG.info('SIGHUP: reading the configuration files again.')
    try:
        conf.mutate_config_files()
    except cfg.Error as error:
        LOG.error('The configuration files cannot be read: %s. What was '
                  'configured before stays in force.', error)
