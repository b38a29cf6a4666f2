# SPDX-License-Identifier: Apache-2.0

"""Nova's driver finds the node of an instance in a pool."""

import ast
import inspect
from unittest import mock

from nova import exception
from nova import objects
from nova.virt.ironic import driver as nova_driver

from nova_ironic_ring.compute import driver
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.compute.pools import on_node
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base

NODE = fake_nova.NODES[0]
POOL = 'me.CUSTOM_BAREMETAL.01234567'


class SourceTestCase(base.DriverTestCase):
    """The methods are those in which Nova's driver reads the node."""

    #: It writes the node into a line at DEBUG, and does nothing.
    _HARMLESS = {'plug_vifs'}
    #: The pool driver has its own, or destroys the instance.
    _REPLACED = {'prepare_for_spawn', 'failed_spawn_cleanup'}

    def test_all_readers(self):
        (found,) = (
            each for each in ast.parse(inspect.getsource(nova_driver)).body
            if isinstance(each, ast.ClassDef) and each.name == 'IronicDriver')
        calls = {method.name: self._of_self(method) for method in found.body
                 if isinstance(method, ast.FunctionDef)}
        reading = {method.name for method in found.body
                   if isinstance(method, ast.FunctionDef)
                   and any(map(self._is_node, ast.walk(method)))}
        while True:
            more = {name for name, called in calls.items()
                    if called & reading} - reading
            if not more:
                break
            reading |= more
        public = {name for name in reading if not name.startswith('_')}
        known = {name for name in on_node.READERS + on_node.CLEANERS
                 if name in vars(nova_driver.IronicDriver)}
        self.assertEqual(known | self._HARMLESS | self._REPLACED, public)

    @staticmethod
    def _of_self(method):
        return {each.attr for each in ast.walk(method)
                if isinstance(each, ast.Attribute)
                and isinstance(each.value, ast.Name)
                and each.value.id == 'self'}

    @staticmethod
    def _is_node(each):
        """Say whether something is instance.node or instance.get('node')."""
        match each:
            case ast.Attribute(value=ast.Name(id='instance'), attr='node'):
                return True
            case ast.Call(func=ast.Attribute(
                    value=ast.Name(id='instance'), attr='get'),
                    args=[ast.Constant(value='node'), *_]):
                return True
            case ast.Subscript(value=ast.Name(id='instance'),
                               slice=ast.Constant(value='node')):
                return True
        return False


class OnNodeTestCase(base.DriverTestCase):

    MADE: type = pool_driver.IronicPoolDriver

    def setUp(self):
        super().setUp()
        self.me = self.nova.compute('me', self.MADE)
        self.driver = self.me.driver
        self.nova.put('i', POOL, 'me')
        self.cloud.nodes[NODE].instance = 'i'
        self.instance = self.nova.instance('i')

    def _given(self, name, instance):
        """Call a method, and return the instance that Nova's driver gets."""
        method = getattr(nova_driver.IronicDriver, name)
        parameters = inspect.signature(method)
        values = {
            each.name: instance if each.name == 'instance' else mock.Mock()
            for each in parameters.parameters.values()
            if each.default is each.empty and each.name != 'self'}
        with mock.patch.object(nova_driver.IronicDriver, name,
                               autospec=True) as called:
            getattr(self.driver, name)(**values)
        if not called.call_args_list:
            return None
        (call,) = called.call_args_list
        return parameters.bind(*call.args, **call.kwargs).arguments['instance']

    def test_each_method(self):
        for name in on_node.READERS + on_node.CLEANERS:
            # An older Nova does not have all of them.
            if name not in vars(nova_driver.IronicDriver):
                continue
            given = self._given(name, self.instance)
            self.assertEqual(NODE, given.node, name)
            self.assertEqual(NODE, given.get('node'), name)
            self.assertEqual('i', given.uuid, name)
            # Nova has the pool still.
            self.assertEqual(POOL, self.instance.node, name)

    def test_instance_on_a_node_of_its_own(self):
        self.nova.put('i', NODE, 'me')
        instance = self.nova.instance('i')
        for name in on_node.READERS:
            if name in vars(nova_driver.IronicDriver):
                self.assertIs(instance, self._given(name, instance), name)

    def test_clean_up_after_a_failed_reservation(self):
        self.cloud.nodes[NODE].instance = None
        for name in on_node.CLEANERS:
            self.assertIsNone(self._given(name, self.instance), name)

    def test_instance_without_a_node(self):
        self.cloud.nodes[NODE].instance = None
        self.assertRaises(exception.InstanceNotFound, getattr,
                          on_node.OnNode(self.driver, self.instance), 'node')

    def test_ironic_is_asked_when_the_node_is_read_and_once(self):
        found = on_node.OnNode(self.driver, self.instance)
        self.nova.asked.clear()
        self.assertEqual('i', found.uuid)
        self.assertEqual([], self.nova.asked)
        self.assertEqual(NODE, found.node)
        self.assertEqual(NODE, found['node'])
        self.assertEqual(['nodes of instances'], self.nova.asked)

    def test_it_is_the_instance_in_all_else(self):
        found = on_node.OnNode(self.driver, self.instance)
        found.task_state = 'rebuilding'
        self.assertEqual('rebuilding', self.instance.task_state)
        self.assertEqual('rebuilding', found['task_state'])
        self.assertEqual('i', found.get('uuid'))
        self.assertIn('host', found)
        found.save()
        self.assertEqual(POOL, self.cloud.instances['i'].node)
        self.assertEqual('rebuilding', self.cloud.instances['i'].task)
        self.assertIsInstance(
            objects.Instance.obj_from_primitive(found.obj_to_primitive()),
            objects.Instance)


class RingOnNodeTestCase(OnNodeTestCase):
    """With the ring driver there are instances in pools after a change."""

    MADE = driver.IronicRingDriver
