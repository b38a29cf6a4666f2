# SPDX-License-Identifier: Apache-2.0

"""Makes each message of this project one line of the log.

Messages quote others: an error of a request, an error that an agent has sent
to Ironic. There is one place for all of them, so that none is forgotten.
"""

import logging
from typing import Any

from nova_ironic_ring.adapters.trail import audit
from nova_ironic_ring.core.values import bounds

# The name of the root of all loggers of this project.
_OURS = 'nova_ironic_ring'


class _Record(logging.LogRecord):
    """A record to which formatters add only what stays within its lines.

    Both are added when the record is written: the text of the exception that
    is handled just then by oslo.log, behind the message, and the traceback.
    """

    @property
    def error_summary(self) -> str | None:
        """What oslo.log writes behind the message."""
        return self.__dict__.get('error_summary')

    @error_summary.setter
    def error_summary(self, text: str | None) -> None:
        self.__dict__['error_summary'] = text and bounds.line(text)

    @property
    def exc_text(self) -> str | None:
        """The traceback."""
        return self.__dict__.get('exc_text')

    @exc_text.setter
    def exc_text(self, text: str | None) -> None:
        self.__dict__['exc_text'] = text and '\n'.join(
            map(bounds.line, text.split('\n')))


class _Factory:
    """Makes the records of the log.

    Python has one factory for all loggers: it makes those of others as the
    factory before it does.
    """

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, name: str | None, *args: Any, **kwargs: Any
                 ) -> logging.LogRecord:
        record: logging.LogRecord = self._before(name, *args, **kwargs)
        # logging.makeLogRecord has no name. An audit line is JSON, which
        # escapes by itself.
        if name and name.partition('.')[0] == _OURS and name != audit.LOGGER:
            if type(record) is logging.LogRecord:
                record.__class__ = _Record
            try:
                text = record.getMessage()
            except Exception:
                # The handler says so, as it does for all loggers.
                return record
            record.msg, record.args = bounds.line(text), ()
        return record


def install() -> None:
    """Have each message be one line from now on; twice is harmless."""
    before = logging.getLogRecordFactory()
    if not isinstance(before, _Factory):
        logging.setLogRecordFactory(_Factory(before))
