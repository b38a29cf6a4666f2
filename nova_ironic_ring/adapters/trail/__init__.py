# SPDX-License-Identifier: Apache-2.0

"""What changes hands, written down where operators look for it."""
