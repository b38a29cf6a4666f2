# SPDX-License-Identifier: Apache-2.0

"""What was read of a deployment, and what can be said of it."""
