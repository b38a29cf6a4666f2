# SPDX-License-Identifier: Apache-2.0

"""What runs inside the lab's services, in the place of what they lack."""
