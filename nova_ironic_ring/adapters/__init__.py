# SPDX-License-Identifier: Apache-2.0

"""Nova, Ironic and Placement, each behind the port that the core names."""
