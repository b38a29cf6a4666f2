# SPDX-License-Identifier: Apache-2.0

"""What starts the processes of a lab, and remembers them."""
