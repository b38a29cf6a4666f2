# SPDX-License-Identifier: Apache-2.0

"""What is known of Tempest's tests on a lab, and why it is so.

The documentation says the same in ``doc/source/tempest.rst``.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why tests fail with each driver, or end with one as with no other.

    :ivar pattern: what matches the names of the tests from their beginning
    :ivar why: why, in a sentence
    :ivar differs: whether they end otherwise with Nova's own driver; if not,
        they fail with that as well
    """

    pattern: str
    why: str
    differs: bool = False

    def fits(self, test: str) -> bool:
        """Return whether it is about a test.

        :param test: the test's name
        """
        return re.match(self.pattern, test) is not None


EXPLANATIONS = [
    Explanation(
        r'tempest\.api\.compute\.admin\.test_quotas',
        "The lab's Nova keeps no quotas (quota.NoopQuotaDriver), so that none "
        'is reached.'),
    Explanation(
        r'tempest\.api\.compute\.admin\.test_server_diagnostics\.',
        "Nova's ironic driver has no diagnostics."),
    Explanation(
        # A server that has failed to rebuild is in the way of the class's end.
        r'(tearDownClass \()?tempest\.api\.compute\.servers\.test_servers\.'
        r'ServersListShow(296|298|2100)Test\b',
        'From 2.93 on Nova takes each rebuild for one of a volume, which its '
        'ironic driver refuses.'),
]
