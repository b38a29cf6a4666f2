# SPDX-License-Identifier: Apache-2.0

"""The table of Nova's names has what is used of Nova, and no more.

Whether the Nova that is installed has them all is asked here as well: the
lanes of older and newer ones run this.
"""

import ast
from collections.abc import Callable, Iterator
import functools
import importlib
import inspect
import pathlib
import re
import textwrap
from typing import Any
from unittest import mock

import fixtures
from nova.compute import manager
from nova.compute import resource_tracker
from nova.scheduler.client import report
from nova.virt import driver as virt_driver
from oslotest import base

from nova_ironic_ring.adapters import names
from nova_ironic_ring.adapters import upstream

_ROOT = pathlib.Path(__file__).parents[4]
_PAGE = _ROOT / 'doc/source/contributor/nova.rst'
_ASKED = _ROOT / 'doc/source/contributor/asked.rst'
_SPECIFICATION = (
    _ROOT / 'contrib/nova/specs/virt-driver-shared-inventory-hooks.rst')
_USES = ast.parse(pathlib.Path(upstream.__file__).read_text())
_ALL = names.NAMES + names.SHARED

# What Nova promises: to drivers, to its own services of another release, and
# to those who write nova.conf.
_PROMISED = ('nova.conf', 'nova.context', 'nova.objects')
# Names that something else has as well, of which alone upstream.py speaks.
_OF_OTHERS = {
    'disabled': 'a line of the log',
    'get': 'mappings, and the client of Ironic',
    'host': 'compute nodes',
    'instance_uuid': 'nodes of Ironic',
    'name': 'options, and parameters',
    'status': 'migrations',
    **dict.fromkeys(('cpu_allocation_ratio', 'disk_allocation_ratio',
                     'ram_allocation_ratio'), 'options, which are in it too'),
    'traits': 'nodes of Ironic',
}


def _attributes(source: ast.AST = _USES) -> Iterator[ast.Attribute]:
    for each in ast.walk(source):
        if isinstance(each, ast.Attribute):
            yield each


def _others() -> Iterator[tuple[pathlib.Path, ast.AST]]:
    """Return the other modules of a service."""
    package = _ROOT / 'nova_ironic_ring'
    for path in sorted(package.rglob('*.py')):
        first = path.relative_to(package).parts[0]
        # The command is a program of its own; history.py has its queries.
        if first not in ('tests', 'lab', 'command') and path.name not in (
                'upstream.py', 'history.py'):
            yield path, ast.parse(path.read_text())


def _words() -> set[str]:
    """Return all names that upstream.py uses of any object.

    Those of methods that are replaced stand in texts.
    """
    return {each.attr for each in _attributes()} | {
        each.value for each in ast.walk(_USES)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    } | {each.name for each in ast.walk(_USES)
         if isinstance(each, ast.FunctionDef)}


def _modules(source: ast.AST = _USES) -> dict[str, str]:
    """Return the modules of Nova, by what a module calls them."""
    found = {}
    for each in ast.walk(source):
        if isinstance(each, ast.ImportFrom) and (
                str(each.module).split('.')[0] == 'nova'):
            found.update({name.asname or name.name:
                          f'{each.module}.{name.name}' for name in each.names})
    return found


@functools.cache
def _members(owner: type) -> set[str]:
    """Name the methods of a class of Nova, and what they give to objects."""
    found = {name for name in vars(owner) if not name.startswith('__')}
    if issubclass(owner, tuple):
        # It was made by a function, and has no more than that.
        return found
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    for base_class in owner.__bases__:
        if base_class.__module__.startswith('nova.'):
            found |= _members(base_class)
    return found | {
        each.attr for each in ast.walk(tree) if isinstance(
            each, ast.Attribute) and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name) and each.value.id == 'self'}


def _without(*gone: str, **changed: Any) -> Callable[[str], Any]:
    """Return what finds a Nova whose manager is another.

    :param gone: the names that it lacks
    :param changed: the methods that it has in the place of Nova's
    """
    theirs = manager.ComputeManager
    made = type(theirs)('ComputeManager', theirs.__bases__, {
        **{name: value for name, value in vars(theirs).items()
           if name not in ('__dict__', '__weakref__', *gone)},
        **changed})
    return lambda owner: (
        made if owner.endswith(':ComputeManager') else names.find(owner))


class TableTestCase(base.BaseTestCase):

    def test_nova_that_is_installed(self):
        self.assertEqual([], names.missing())

    def test_what_is_used_of_modules(self):
        modules = _modules()
        self.assertIn('nova.compute.task_states', modules.values())
        known = {(name.owner, name.name) for name in names.NAMES}
        # The module of a class is known by what is used of the class.
        known |= {tuple(name.owner.split(':')) for name in names.NAMES
                  if ':' in name.owner}
        for each in _attributes():
            if isinstance(each.value, ast.Name) and each.value.id in modules:
                module = modules[each.value.id]
                if module not in _PROMISED:
                    self.assertIn((module, each.attr), known,
                                  f'line {each.lineno} of upstream.py')

    def test_what_is_used_of_classes(self):
        known = {name.name for name in names.NAMES}
        used = _words() - vars(virt_driver.ComputeDriver).keys() - {
            'virtapi', *_OF_OTHERS}
        self.assertEqual({}, {
            owner: found for owner in {
                name.owner for name in names.NAMES if ':' in name.owner
                and not name.owner.startswith('nova.conf:')}
            if (found := used & _members(names.find(owner)) - known)})

    def test_options(self):
        known = {(name.owner, name.name) for name in names.NAMES}
        groups = {
            id(each.value): each for each in _attributes()
            if isinstance(each.value, ast.Attribute)}
        used = set()
        for each in _attributes():
            if isinstance(each.value, ast.Name) and each.value.id == 'CONF':
                option = groups.get(id(each))
                used.add(('nova.conf:CONF', each.attr) if option is None else
                         (f'nova.conf:CONF.{each.attr}', option.attr))
        self.assertIn(('nova.conf:CONF.pci', 'report_in_placement'), used)
        self.assertEqual(set(), used - known)

    def test_private_names(self):
        known = {name.name for name in names.NAMES}
        own = {name for name in vars(upstream)} | {
            each.attr for each in _attributes()
            if each.attr.startswith('_ironic_ring_')}
        self.assertEqual(set(), {
            each.attr for each in _attributes()
            if each.attr.startswith('_') and not each.attr.startswith('__')
        } - known - own)

    def test_nothing_is_in_the_table_that_is_not_used(self):
        words = _words()
        self.assertEqual([], [
            str(name) for name in names.NAMES if name.name not in words])

    def test_parameters_of_calls(self):
        known: dict[str, list[names.Name]] = {}
        for name in names.NAMES:
            if name.call is not None:
                known.setdefault(name.name, []).append(name)
        seen = set()
        for each in ast.walk(_USES):
            if not isinstance(each, ast.Call) or not isinstance(
                    each.func, ast.Attribute):
                continue
            found = known.get(each.func.attr, ())
            # Options are bound to their names with the same word.
            if not found or each.func.attr in _OF_OTHERS:
                continue
            seen.add(each.func.attr)
            given = len(each.args), {
                f'{word.arg}=' for word in each.keywords if word.arg}
            self.assertTrue(any(
                given[0] <= len([word for word in name.call
                                 if not word.endswith('=')])
                and given[1] <= set(name.call) for name in found), (
                    f'line {each.lineno} of upstream.py gives '
                    f'{each.func.attr} more than the table has'))
        self.assertGreater(len(seen), 25, seen)

    def test_what_nova_calls_in_the_place_of_its_own(self):
        # As at a start of both drivers.
        compute = object.__new__(manager.ComputeManager)
        compute.reportclient = mock.create_autospec(
            report.SchedulerReportClient, instance=True)
        compute.rt = resource_tracker.ResourceTracker(
            'me', mock.Mock(), compute.reportclient)
        compute.virtapi = manager.ComputeVirtAPI(compute)
        source = mock.Mock(virtapi=compute.virtapi)
        for put in (upstream.destroy_no_evacuated, upstream.keep_detached,
                    upstream.restore_providers,
                    upstream.bear_missing_providers, upstream.update_in_turn):
            put(source)
        for put in (
                upstream.guard_failed_rebuild, upstream.guard_rebuilt,
                upstream.before_each_start, upstream.before_rebuilt,
                upstream.excuse_builds, upstream.bound_records,
                upstream.when_started, upstream.read_rows_once,
                upstream.look_where_builds_are):
            put(source, mock.Mock())
        for put in upstream.guard_interrupted, upstream.tell_status:
            put(source, mock.Mock(), mock.Mock())
        upstream.update_when_needed(source, 'me', mock.Mock(), mock.Mock())
        owners = {
            manager.ComputeManager: compute,
            resource_tracker.ResourceTracker: compute.rt,
            report.SchedulerReportClient: compute.reportclient,
            upstream.NovaIronicDriver: type(
                'Driver', (upstream.NodeCache, upstream.OwnNodes), {})(),
        }
        for name in names.NAMES:
            if name.replaced is None:
                continue
            owner = names.find(name.owner)
            ours = inspect.signature(getattr(owners[owner], name.name))
            words = [each.name for each in ours.parameters.values()
                     if each.kind is each.POSITIONAL_OR_KEYWORD]
            wanted = [each for each in name.replaced if each != '*']
            self.assertEqual(wanted, words[:len(wanted)], str(name))
            if '*' not in name.replaced:
                self.assertEqual(wanted, words, str(name))

    def test_page(self):
        page = _PAGE.read_text()
        cells = re.findall(r'^   \* - (``.*(?:\n       .*)*)$', page,
                           re.MULTILINE)
        said = [each for cell in cells
                for each in re.findall(r'``([^`]+)``', ' '.join(cell.split()))]
        self.assertEqual(
            sorted({str(name) for name in names.NAMES}), sorted(said))


class SharedTestCase(base.BaseTestCase):
    """What the other modules of a service use."""

    def test_what_is_used_of_modules(self):
        known = {(name.owner, name.name) for name in _ALL} | {
            tuple(name.owner.split(':')) for name in _ALL if ':' in name.owner}
        used = set()
        for path, source in _others():
            modules = _modules(source)
            for each in _attributes(source):
                if isinstance(each.value, ast.Name) and (
                        module := modules.get(each.value.id, '')):
                    if not module.startswith(_PROMISED):
                        used.add((module, each.attr))
                        self.assertIn((module, each.attr), known,
                                      f'{path}, line {each.lineno}')
        self.assertEqual(set(), {
            (name.owner, name.name) for name in names.SHARED
            if ':' not in name.owner} - used)

    def test_what_is_used_of_the_client_of_placement(self):
        known = {name.name: name for name in _ALL
                 if name.owner.endswith(':SchedulerReportClient')}
        used = set()
        for path, source in _others():
            # Those that are passed on are used as well.
            used |= {each.attr for each in _attributes(source)
                     if ast.unparse(each.value) == 'self._client'}
            for each in ast.walk(source):
                if isinstance(each, ast.Call) and isinstance(
                        each.func, ast.Attribute) and (
                        ast.unparse(each.func.value) == 'self._client'):
                    where = f'{path}, line {each.lineno}: {each.func.attr}'
                    self.assertIn(each.func.attr, known, where)
                    call = known[each.func.attr].call
                    self.assertLessEqual(
                        len(each.args), len([word for word in call if not
                                             word.endswith('=')]), where)
                    self.assertLessEqual({
                        f'{word.arg}=' for word in each.keywords},
                        set(call), where)
        self.assertEqual(set(), {
            name.name for name in names.SHARED
            if name.owner.endswith(':SchedulerReportClient')} - used)

    def test_page(self):
        said = ' '.join(_PAGE.read_text().partition(
            '\nWhat other modules use\n')[2].split())
        self.assertEqual([], [
            str(name) for name in names.SHARED
            if name.is_function and f'``{name}``' not in said])

    def test_start_is_refused_without_one(self):
        class Client:
            pass

        found = names.missing(lambda owner: Client if owner.endswith(
            ':SchedulerReportClient') else names.find(owner))
        self.assertIn(
            'SchedulerReportClient.put_allocations(context, consumer_uuid, '
            'payload)', found)


class AskedTestCase(base.BaseTestCase):
    """What is asked of Nova would replace each name."""

    def _columns(self) -> Iterator[tuple[str, str]]:
        """Return the methods and the names of each row of the hooks."""
        table = _ASKED.read_text().partition('\nSeven hooks\n')[2]
        for row in re.split(r'^   \* - ', table, flags=re.MULTILINE)[2:]:
            _, methods, replaced = re.split(r'\n     -', row)
            yield methods, replaced.partition('\n\n')[0]

    def test_each_name_goes_with_one_hook(self):
        said = [name for _, replaced in self._columns()
                for name in re.findall(r'``(\w+)``', replaced)]
        self.assertEqual(sorted({name.name for name in names.NAMES}),
                         sorted(said))

    def test_each_hook_is_in_the_specification(self):
        text = _SPECIFICATION.read_text()
        hooks = [method for methods, _ in self._columns()
                 for method in re.findall(r'``([^`]+)``', methods)]
        self.assertGreater(len(hooks), 20)
        self.assertEqual([], [each for each in hooks if each not in text])
        rows = [methods for methods, _ in self._columns() if methods.strip()]
        self.assertEqual(7, len(rows))

    def test_patches_are_explained(self):
        text = _ASKED.read_text()
        self.assertEqual(
            [path.name[:4] for path in sorted(
                (_ROOT / 'contrib/nova/patches').glob('*.patch'))],
            re.findall(r'^``(\d{4})``: ', text, re.MULTILINE))

    def test_ten_more_fixes(self):
        said = ' '.join(_PAGE.read_text().split())
        # Nova 34 has the one that is for older releases.
        self.assertEqual(
            10, len(re.findall('(?<!")a fix of its own', said)) - 1)
        self.assertIn('- Ten more fixes', _ASKED.read_text())


class MissingTestCase(base.BaseTestCase):

    def test_method_that_is_gone(self):
        self.assertEqual(
            ['ComputeManager._init_instance(context, instance)',
             'ComputeManager.power_update(instance)'],
            names.missing(_without('_init_instance', 'power_update')))

    def test_method_that_is_no_method(self):
        self.assertEqual(['ComputeManager.reset()'],
                         names.missing(_without(reset=None)))

    def test_parameter_of_a_call(self):
        said = ['ComputeManager._shelve_offload_instance(context, instance, '
                'clean_shutdown)']
        for method, expected in (
                (lambda self, context, instance: None, said),
                # Another one before it: what is given is taken for that.
                (lambda self, context, instance, bdms, clean_shutdown: None,
                 said),
                (lambda self, context, instance, bdms=None,
                 clean_shutdown=True: None, said),
                # One more that is needed.
                (lambda self, context, instance, clean_shutdown, bdms: None,
                 said),
                (lambda self, context, instance, clean_shutdown, *,
                 bdms: None, said),
                (lambda self, context, instance, clean_shutdown, bdms=None:
                 None, [])):
            self.assertEqual(expected, names.missing(
                _without(_shelve_offload_instance=method)))

    def test_parameter_that_is_given_by_its_name(self):
        said = ['ComputeManager._notify_about_instance_usage(context, '
                'instance, event_suffix, network_info, extra_usage_info)']
        for method, expected in (
                (lambda self, context, instance, event_suffix,
                 network_info=None: None, said),
                (lambda self, context, instance, event_suffix, **more: None,
                 [])):
            self.assertEqual(expected, names.missing(
                _without(_notify_about_instance_usage=method)))

    def test_parameter_that_is_read(self):
        for method, expected in (
                (lambda self, context, instance, image: None,
                 ['ComputeManager.unshelve_instance(instance, node)']),
                # A decorator that does not tell what is below it.
                (lambda self, *args, **kwargs: None,
                 ['ComputeManager.unshelve_instance(instance, node)']),
                (lambda self, node, more, instance: None, [])):
            self.assertEqual(expected, names.missing(
                _without(unshelve_instance=method)))

    def test_parameter_that_ours_does_not_take(self):
        said = ['ComputeManager._destroy_evacuated_instances(context, '
                'node_cache)']
        for method, expected in (
                (lambda self, context, node_cache, more=None: None, said),
                (lambda self, context: None, said),
                (lambda self, context, nodes: None, said),
                (lambda self, context, node_cache: None, [])):
            self.assertEqual(expected, names.missing(
                _without(_destroy_evacuated_instances=method)))
        # Ours takes whatever comes after these.
        for method, expected in (
                (lambda self, instance, fault, more: None, []),
                (lambda self, context, instance: None,
                 ['ComputeManager._set_instance_obj_error_state(instance)'])):
            self.assertEqual(expected, names.missing(
                _without(_set_instance_obj_error_state=method)))

    def test_static_method(self):
        # Nova's own is one.
        for method, expected in (
                (staticmethod(lambda filter_properties, request_spec: {}), []),
                (staticmethod(lambda request_spec: {}), [
                    'ComputeManager._get_scheduler_hints(filter_properties, '
                    'request_spec)'])):
            self.assertEqual(expected, names.missing(
                _without(_get_scheduler_hints=method)))

    def test_attribute_of_an_object(self):
        class Tracker(resource_tracker.ResourceTracker):
            pass

        class Other:
            """Has all but what it gives to its objects."""

            def __init__(self, node):
                self.compute_nodes, self.provider_configs = {}, {}
                # This one reads and writes it, and does not have it.
                self.other = node.stats
                node.stats = {}

        for name, value in vars(Tracker.__mro__[1]).items():
            if not name.startswith('__'):
                setattr(Other, name, functools.partialmethod(value))
        for owner, expected in (
                (Tracker, []), (Other, ['ResourceTracker.stats'])):
            found = names.missing(
                lambda name, owner=owner:
                    owner if name.endswith(':ResourceTracker')
                    else names.find(name))
            self.assertEqual(expected, sorted(
                each for each in found if '(' not in each))

    def test_module_class_and_option(self):
        for gone, expected in (
                ('nova.compute.claims:NopClaim',
                 ['nova.compute.claims.NopClaim']),
                ('nova.compute.task_states', ['nova.compute.task_states']),
                # Once, however many names it has.
                ('nova.exception', ['nova.exception'])):
            self.assertEqual(expected, names.missing(
                lambda owner, gone=gone:
                    None if owner == gone else names.find(owner)))
        self.assertEqual(
            ['nova.utils._get_auth_and_session(confgrp)',
             'nova.utils.synchronized(name, fair)',
             'nova.utils.normalize_rc_name(rc_name)',
             'nova.utils.temporary_mutation'],
            names.missing(lambda owner: mock.Mock(spec=()) if owner ==
                          'nova.utils' else names.find(owner)))
        self.assertEqual(
            ['[pci] report_in_placement'],
            names.missing(lambda owner: object() if owner ==
                          'nova.conf:CONF.pci' else names.find(owner)))

    def test_what_is_not_in_nova(self):
        for owner in ('nova.no_such_module', 'nova.no_such.module',
                      'nova.no_such:Class', 'nova.utils:NoSuchClass',
                      'nova.conf:CONF.nothing'):
            self.assertIsNone(names.find(owner), owner)

    def test_module_that_needs_what_is_not_installed(self):
        for error in (ModuleNotFoundError(name='tooz'),
                      ModuleNotFoundError(name='nova.virt.iron'),
                      ImportError('cannot import a name')):
            with fixtures.MockPatchObject(
                    importlib, 'import_module', side_effect=error):
                self.assertRaises(type(error), names.find,
                                  'nova.virt.ironic.driver:IronicDriver')


class SentencesTestCase(base.BaseTestCase):

    def test_refusal(self):
        self.assertEqual(
            'Nova 36.0.0 lacks a, b and c, which this driver needs: use Nova '
            '31 to 34, or a release of the driver that is made for this Nova.',
            names.refusal('36.0.0', ['a', 'b', 'c']))
        self.assertIn('lacks a, which', names.refusal('36.0.0', ['a']))

    def test_what_is_tested(self):
        for release, expected in (
                ('31.0.0', True), ('33.2.0.dev3', True), ('34.0.1.dev7', True),
                ('34.1.0', True), ('34.1.1.dev2', True),
                # Nova's main branch.
                ('34.1.0.dev12', False), ('35.0.0', False),
                ('30.1.0', False), ('0.0.0', False), ('unknown', False)):
            self.assertIs(expected, names.is_tested(release), release)
        self.assertIn('Nova 35.0.0 is none', names.doubt('35.0.0'))
        self.assertIn('tested with, 31 to 34:', names.doubt('35.0.0'))

    def test_the_lanes_are_what_is_tested(self):
        lanes = re.search(r'\[testenv:nova\{([\d,]+)\}',
                          (_ROOT / 'tox.ini').read_text())[1].split(',')
        first, last = names.TESTED
        self.assertEqual([str(each) for each in range(first, last + 1)], lanes)
