# SPDX-License-Identifier: Apache-2.0

"""What a pass reads before it decides."""
