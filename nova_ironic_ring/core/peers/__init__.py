# SPDX-License-Identifier: Apache-2.0

"""Which services there are, and which nodes are for which of them."""
