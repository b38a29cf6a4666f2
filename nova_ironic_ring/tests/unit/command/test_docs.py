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

"""Tests of what the documentation promises to programs."""

import pathlib
import re

from cliff import commandmanager
from oslotest import base

from nova_ironic_ring.command import decisions as command_decisions
from nova_ironic_ring.command import findings
from nova_ironic_ring.command import overview
from nova_ironic_ring.command import past
from nova_ironic_ring.command import steps
from nova_ironic_ring.core import audit
from nova_ironic_ring.core import decisions

_DOCS = pathlib.Path(__file__).parents[4] / 'doc/source'
_PAGE = _DOCS / 'command.rst'


class DocsTestCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.page = _PAGE.read_text()

    def _tables(self, columns: int) -> set[tuple[str, ...]]:
        """Return the first columns of the lines of all tables."""
        pattern = r'   \* - (\w+)\n' + r'     - (.*)\n' * (columns - 1)
        return set(re.findall(pattern, self.page))

    def test_exit_codes(self):
        manager = commandmanager.CommandManager('nova_ironic_ring.command')
        for name, _ in manager:
            self.assertIn(f'   * - ``{name}``\n', self.page)

    def test_findings(self):
        self.assertLessEqual(
            {(code.name, code.kind, code.severity.value)
             for code in findings.Code}, self._tables(3))

    def test_states(self):
        self.assertLessEqual({(code.name,) for code in overview.Code},
                             {line[:1] for line in self._tables(2)})

    def test_decisions(self):
        self.assertLessEqual(
            {(code.name,) for code in decisions.Decision}
            | {(command_decisions.NONE,), (command_decisions.COUNT,)},
            {line[:1] for line in self._tables(2)})

    def test_history(self):
        page = (_DOCS / 'history.rst').read_text()
        cells = re.findall(r'   \* - ([A-Z_, ]+)\n', page)
        described = set(re.findall(r'[A-Z_]{4,}', ' '.join(cells)))
        self.assertEqual(
            {code.name for kind in (audit.Code, past.Code) for code in kind},
            described)
        for name in audit.ACTIONS.values():
            self.assertIn(f'   * - ``{name}``\n', page)

    def test_steps(self):
        self.assertLessEqual(
            {(code.name,) for kind in (steps.Action, steps.Result)
             for code in kind}, {line[:1] for line in self._tables(2)})
