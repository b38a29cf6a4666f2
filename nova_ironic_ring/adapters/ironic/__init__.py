# SPDX-License-Identifier: Apache-2.0

"""What is read from Ironic and written there."""
