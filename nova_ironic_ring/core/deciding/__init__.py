# SPDX-License-Identifier: Apache-2.0

"""What is to be done: pure, and the same for both drivers."""
