# SPDX-License-Identifier: Apache-2.0

"""Code that runs inside the lab's services, instead of real drivers."""
