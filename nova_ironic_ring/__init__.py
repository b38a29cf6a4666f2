# SPDX-License-Identifier: Apache-2.0

"""Active/active nova-compute services that share one Ironic."""
