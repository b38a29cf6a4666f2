# SPDX-License-Identifier: Apache-2.0

"""Properties of a node that are nested deeper than Python's stack goes."""

import json
from typing import Any
from unittest import mock

import ddt
import fixtures
from keystoneauth1 import session
import nova.conf
from oslotest import base
import requests

from nova_ironic_ring.adapters import conf
from nova_ironic_ring.adapters.ironic import nodes
from nova_ironic_ring.adapters import limits
from nova_ironic_ring.adapters import nesting
from nova_ironic_ring.adapters import plain
from nova_ironic_ring.adapters import upstream
from nova_ironic_ring.core.values import settings
from nova_ironic_ring.tests.fixtures import ironic_api

CONF = nova.conf.CONF
conf.register_opts(CONF)

OBJECTS = '{"a":', '}'
LISTS = '[1,', ']'


def nest(kind: tuple[str, str], levels: int) -> str:
    """Return the text of a nested JSON value."""
    return kind[0] * levels + '0' + kind[1] * levels


def answer(body: str) -> requests.Response:
    """Return an answer of a service, as a session returns it."""
    made = requests.Response()
    made.status_code, made._content = 200, body.encode()
    nesting.read_shallow(made)
    return made


@ddt.ddt
class JsonTestCase(base.BaseTestCase):

    @ddt.data(OBJECTS, LISTS)
    def test_what_is_deep_is_left_out(self, kind):
        # What Python can decode, and what it cannot.
        for levels in 31, 32, 500, 100_000:
            found = answer(
                f'{{"before": [1], "deep": {nest(kind, levels)}, '
                '"after": "}]{["}').json()
            self.assertEqual(([1], '}]{['), (
                found['before'], found['after']))
            inner, kept = found['deep'], 0
            while isinstance(inner, (dict, list)):
                inner, kept = inner['a'] if isinstance(
                    inner, dict) else inner[-1], kept + 1
            self.assertEqual((31, 0) if levels == 31 else (31, None),
                             (kept, inner))

    def test_text_that_looks_nested(self):
        text = '{["' * 40 + '\\'
        self.assertEqual(
            [text, None], answer(
                f'[{json.dumps(text)}, {nest(LISTS, 99_999)}]').json()[:1]
            + [None])

    def test_shallow_answer(self):
        said = {'nodes': [{'uuid': 'é', 'properties': {'a': [{}, 1.5]}}]}
        self.assertEqual(said, answer(json.dumps(said)).json())

    def test_no_json(self):
        for body in 'no', nest(('[', ''), 100_000):
            self.assertRaises(
                requests.exceptions.JSONDecodeError, answer(body).json)

    def test_answer_of_a_test(self):
        made = mock.Mock()
        nesting.read_shallow(made)
        self.assertIsInstance(made, mock.Mock)


class DeepApi(ironic_api.Api):
    """An Ironic of which one node has such properties."""

    def send(self, request: requests.PreparedRequest, *args: Any,
             **kwargs: Any) -> requests.Response:
        self.nodes[2] = {
            **self.nodes[2], 'properties': {'cpus': 8, 'x': 'DEEP'}}
        made = super().send(request, *args, **kwargs)
        made._content = made.content.replace(
            b'"DEEP"', nest(LISTS, 5_000).encode())
        return made


class NodesTestCase(base.BaseTestCase):
    """Only the node that has such properties is read without them."""

    def setUp(self):
        super().setUp()
        self.api = DeepApi([ironic_api.node(number) for number in range(4)])
        self.uuid = self.api.nodes[2]['uuid']
        self.client = self.api.connect()
        self.assertIs(session.Session, type(self.client.session))
        limits.limit(self.client.session, CONF)

    def test_service(self):
        self.useFixture(fixtures.MockPatch(
            'nova.utils.get_sdk_adapter', return_value=self.client))
        ironic = nodes.Ironic(upstream.NovaIronicDriver(mock.Mock()))
        found = ironic.nodes(settings.Scope())
        self.assertEqual({each['uuid'] for each in self.api.nodes},
                         found.keys())
        # Twice: what is read is compared with what was read before.
        for _ in range(2):
            self.assertEqual(found.keys(), ironic.fingerprints(found).keys())
            ironic.nodes(settings.Scope())
        self.assertEqual(8, ironic.describe(found)[self.uuid].size.cpus)
        self.assertIn(self.uuid, ironic.named(settings.Scope(), [self.uuid]))
        ironic.latest(settings.Scope())

    def test_novas_own_driver(self):
        found = {node.id: node for node in self.client.nodes(
            fields=upstream.node_fields())}
        self.assertEqual(4, len(found))
        self.assertEqual(8, found[self.uuid].properties['cpus'])
        self.assertEqual(8, self.client.get_node(
            self.uuid, fields=upstream.node_fields()).properties['cpus'])

    def test_command(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova_ironic_ring.adapters.plain.connect',
            lambda *args: self.client))
        ironic = plain.Ironic(CONF)
        self.assertEqual(4, len(list(ironic.nodes(('uuid', 'properties')))))
        self.assertEqual(8, ironic.node(
            self.uuid, ('uuid', 'properties'))['properties']['cpus'])
