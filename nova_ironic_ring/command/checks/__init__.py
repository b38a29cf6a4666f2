# SPDX-License-Identifier: Apache-2.0

"""What the command "check" looks for."""
