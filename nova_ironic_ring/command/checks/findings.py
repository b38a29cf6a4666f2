# SPDX-License-Identifier: Apache-2.0

"""The findings of the checks, and their codes for programs."""

import dataclasses
import enum


class Severity(enum.Enum):
    """How bad a finding is."""

    #: Something does not work until somebody repairs it.
    ERROR = 'error'
    #: It may disappear by itself, or be intended.
    WARNING = 'warning'


class FindingCode(enum.Enum):
    """The kinds of findings, for programs: these names stay.

    :ivar kind: the name of the check, which people see
    :ivar severity: how bad it is
    """

    kind: str
    severity: Severity

    def __new__(cls, kind: str, severity: Severity) -> 'FindingCode':
        code = object.__new__(cls)
        # Enums merge members with the same value.
        code._value_ = len(cls.__members__)
        code.kind, code.severity = kind, severity
        return code

    CONFIGURATION_DIFFERS = 'configuration', Severity.ERROR
    PROTOCOLS_DIFFER = 'drivers', Severity.WARNING
    RING_WITHOUT_MEMBER = 'groups', Severity.ERROR
    PEER_LIST_DIFFERS_FROM_SERVICES = 'groups', Severity.WARNING
    NODE_NOT_SERVED = 'groups', Severity.WARNING
    SCOPES_OVERLAP = 'groups', Severity.ERROR
    NODES_IN_TWO_CELLS = 'groups', Severity.ERROR
    AGGREGATES_DIFFER = 'aggregates', Severity.WARNING
    NOT_IN_AGGREGATE = 'aggregates', Severity.WARNING
    LEFT_IN_AGGREGATE = 'aggregates', Severity.WARNING
    SERVICE_SAYS_NOTHING = 'drivers', Severity.WARNING
    SERVICE_WITHOUT_NODE = 'drivers', Severity.WARNING
    PASSES_FAIL = 'services', Severity.ERROR
    FORCED_DOWN_AND_ALIVE = 'services', Severity.WARNING
    RINGS_DIFFER = 'configuration', Severity.WARNING
    FAILOVER_RAISED = 'configuration', Severity.WARNING
    START_WITHOUT_LIMIT = 'configuration', Severity.WARNING
    RECORD_WITHOUT_NODE = 'rows', Severity.WARNING
    RECORDS_OF_LOST_SERVICE = 'services', Severity.WARNING
    INSTANCES_OF_LOST_SERVICE = 'services', Severity.ERROR
    NODE_WITHOUT_RECORD = 'rows', Severity.WARNING
    PROVIDER_WITHOUT_NODE = 'providers', Severity.WARNING
    NODE_WITHOUT_PROVIDER = 'providers', Severity.ERROR
    NODE_WITHOUT_CLASS = 'providers', Severity.WARNING
    POOL_OF_LOST_SERVICE = 'pools', Severity.WARNING
    POOLS_DIFFER_FROM_IRONIC = 'pools', Severity.WARNING
    NODE_WITHOUT_POOL = 'pools', Severity.WARNING
    NODES_LEFT_OUT = 'pools', Severity.WARNING
    POOL_WITHOUT_RECORD = 'pools', Severity.ERROR
    INSTANCE_WITHOUT_NODE = 'instances', Severity.WARNING
    INSTANCE_NOT_IN_NOVA = 'instances', Severity.WARNING
    INSTANCE_ELSEWHERE = 'instances', Severity.ERROR
    INSTANCE_AND_NODE_APART = 'instances', Severity.WARNING
    TWO_ALLOCATIONS = 'allocations', Severity.ERROR
    ALLOCATION_LEFT = 'allocations', Severity.WARNING
    INSTANCE_WITHOUT_ALLOCATION = 'allocations', Severity.WARNING


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something to look at.

    :ivar code: its kind
    :ivar subject: the service, node or other thing that it concerns
    :ivar what: what was found, in words
    :ivar advice: what to do
    :ivar cell: the name of its cell; None if it is in none
    """

    code: FindingCode
    subject: str
    what: str
    advice: str
    cell: str | None = None

    @property
    def kind(self) -> str:
        """The name of its check."""
        return self.code.kind
