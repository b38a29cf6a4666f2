# SPDX-License-Identifier: Apache-2.0

"""Which services exist, and which nodes are for which of them."""
