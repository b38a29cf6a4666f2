# SPDX-License-Identifier: Apache-2.0

"""Why some of Tempest's tests fail on a lab, or end differently.

The documentation says the same in ``doc/source/tempest.rst``.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why tests fail with each driver, or end differently.

    :ivar pattern: a regular expression that matches the beginning of the
        tests' names
    :ivar why: the reason, in a sentence
    :ivar differs: whether the tests end differently with Nova's own driver; if
        not, they fail with it as well
    """

    pattern: str
    why: str
    differs: bool = False

    def fits(self, test: str) -> bool:
        """Return whether this explains a test.

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
        # After a rebuild that has failed, the class cannot clean up either.
        r'(tearDownClass \()?tempest\.api\.compute\.servers\.test_servers\.'
        r'ServersListShow(296|298|2100)Test\b',
        'From version 2.93 of the API on, Nova treats each rebuild as one of '
        'a server on a volume, which its ironic driver refuses.'),
]
#: What else fails on a devstack, and not on a lab.
ON_DEVSTACK = [
    Explanation(
        r'tempest\.api\.compute\.servers\.test_instance_actions\.'
        r'InstanceActionsTestJSON\.test_list_instance_actions',
        'On a devstack, Ironic tells Nova of each change of power, and Nova '
        'notes it as an action of the server.'),
    Explanation(
        r'tempest\.api\.compute\.admin\.test_servers_on_multinodes\.'
        r'ServersOnMultiNodesTest\.'
        r'test_create_server_with_scheduler_hint_group_anti_affinity',
        "Of servers of one request, Nova's scheduler does not see that their "
        'nodes have the same host, and devstack turns the later check off.'),
    Explanation(
        r'tempest\.api\.compute\.servers\.test_create_server_multi_nic\.'
        r'ServersTestMultiNic\.test_verify_'
        r'(duplicate_network_nics|multiple_nics_order)',
        'A node of the devstack has one port, and these servers need more.'),
    Explanation(
        r'ironic_tempest_plugin\.tests\.api\.admin\.test_nodes\.'
        r'TestResetInterfaces\.test_reset_all_interfaces',
        'The test makes a node for IPMI, which is not enabled here.'),
]
