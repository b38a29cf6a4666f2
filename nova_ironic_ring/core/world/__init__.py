# SPDX-License-Identifier: Apache-2.0

"""Nova, Ironic and Placement in memory, and what services would do in them."""
