# SPDX-License-Identifier: Apache-2.0

"""What nova-compute loads: the driver, its guards, its log and its report."""
