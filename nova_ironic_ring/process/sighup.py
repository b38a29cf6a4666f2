# SPDX-License-Identifier: Apache-2.0

"""SIGHUP changes the configuration of a nova-compute that runs.

What oslo.service does with the signal differs by the kind of threads: on
native ones nothing is read again, for a service that runs in the main process
as nova-compute does; on eventlet the whole service is stopped and started
again, and a second signal in that time ends it.
"""

import signal
from types import FrameType

from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Reloader:
    """Reads the mutable options again after a SIGHUP, when it is asked to.

    Not when the signal comes: that may be in the middle of anything, with a
    lock held that this would take, or in eventlet's own loop, where nothing
    may wait.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """Name the configuration.

        :param conf: the configuration to be changed
        """
        self.conf = conf
        self._wanted = False

    def install(self) -> None:
        """Note each SIGHUP from now on, and do nothing else."""
        try:
            signal.signal(signal.SIGHUP, self._note)
        except ValueError:
            # Not in the main thread, where Nova starts its drivers.
            LOG.warning('SIGHUP will not change the configuration: its '
                        'handler can be set in the main thread only.')

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._wanted = True

    def reload(self) -> bool:
        """Read the configuration files again, if a SIGHUP has come.

        :returns: whether they were read; an unreadable file changes nothing
        """
        if not self._wanted:
            return False
        self._wanted = False
        LOG.info('SIGHUP: reading the configuration files again.')
        try:
            self.conf.mutate_config_files()
        except cfg.Error as error:
            LOG.error('Cannot read the configuration files: %s. The former '
                      'configuration stays in force.', error)
            return False
        return True
