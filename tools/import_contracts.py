# SPDX-License-Identifier: Apache-2.0
"""Says what a package may import, for lint-imports; see pyproject.toml."""

import grimp
from importlinter.application import output
from importlinter import Contract
from importlinter import ContractCheck
from importlinter.domain import fields


class OnlyContract(Contract):
    """A package imports itself and what is allowed, and nothing else.

    ``forbidden``, which import-linter has, names what is not allowed, and
    does not know what nobody has thought of.
    """

    type_name = 'only'

    package = fields.ModuleField()
    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Find the imports that are not allowed.

        :param graph: all imports
        :param verbose: whether to say more, of which there is nothing
        """
        package = str(self.package.name)
        modules = {package} | graph.find_descendants(package)
        allowed = set(self.allowed)
        found = [
            (importer, imported) for importer in sorted(modules)
            for imported in sorted(
                graph.find_modules_directly_imported_by(importer))
            if imported not in modules
            and imported.partition('.')[0] not in allowed]
        return ContractCheck(kept=not found, metadata={'found': found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print what is not allowed.

        :param check: what was found
        """
        for importer, imported in check.metadata['found']:
            output.print_error(f'{importer} must not import {imported}')
