# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Words that people read in logs and in what the command prints."""


def of(count: int, one: str, more: str = '') -> str:
    """Say how many there are.

    :param count: that
    :param one: what follows the number 1: a noun in the singular, with its
        verb where it has one
    :param more: what follows every other number; empty for ``one`` with an
        "s"
    :returns: such as "1 node", "2 nodes" and "0 nodes"
    """
    return f'{count} {one if count == 1 else more or f"{one}s"}'
