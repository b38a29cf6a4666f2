# SPDX-License-Identifier: Apache-2.0

"""One pass, and one reaction between two passes, from top to bottom."""
