# SPDX-License-Identifier: Apache-2.0

"""Tests of the alerts and the dashboard, against what is exported."""

import html
import itertools
import json
import pathlib
import re
from typing import Any

import promql_parser
import yaml

from nova_ironic_ring.compute import metrics
from nova_ironic_ring.compute import pool_driver
from nova_ironic_ring.tests.fixtures import fake_nova
from nova_ironic_ring.tests.unit.compute import base

_ROOT = pathlib.Path(__file__).resolve().parents[4]
_SHIPPED = _ROOT / 'etc/monitoring'
_DURATION = r'\d+[smhd]'
# What Prometheus adds to what it reads.
_OWN_LABELS = {'instance', 'job'}


class MonitoringTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.rules = yaml.safe_load(
            (_SHIPPED / 'nova-ironic-ring.rules.yaml').read_text())
        self.dashboard = json.loads(
            (_SHIPPED / 'nova-ironic-ring.dashboard.json').read_text())
        self.page = (_ROOT / 'doc/source/monitoring.rst').read_text()
        #: The values of the label of each metric, by driver.
        self.by_ring = self._exported(self.me)
        self.by_pool = self._exported(self.nova.compute(
            'me', pool_driver.IronicPoolDriver))
        self.exported = {**self.by_ring, **self.by_pool}

    def _exported(self, host: fake_nova.Compute
                  ) -> dict[str, dict[str, set[str]]]:
        """Return the values of the label of each metric of a service."""
        found: dict[str, dict[str, set[str]]] = {}
        for family in metrics.Collector(host.ring, lambda: 0).collect():
            for sample in family.samples:
                known = found.setdefault(sample.name, {})
                for label, value in sample.labels.items():
                    known.setdefault(label, set()).add(value)
        return found

    def _alerts(self) -> list[dict[str, Any]]:
        return [rule for group in self.rules['groups']
                for rule in group['rules']]

    def _expressions(self) -> list[str]:
        return [alert['expr'] for alert in self._alerts()] + [
            target['expr'] for panel in self.dashboard['panels']
            for target in panel['targets']]

    def _selectors(self, expression: str
                   ) -> list[promql_parser.VectorSelector]:
        found = []

        def visit(node: promql_parser.Expr) -> None:
            if isinstance(node, promql_parser.VectorSelector):
                found.append(node)
        promql_parser.walk(promql_parser.parse(expression), visit)
        return found

    def test_only_what_is_exported_is_asked_for(self):
        for expression in self._expressions():
            selectors = self._selectors(expression)
            self.assertTrue(selectors, expression)
            for selector in selectors:
                self.assertIn(selector.name, self.exported, expression)
                for matcher in selector.matchers.matchers:
                    self._see(matcher, self.exported[selector.name],
                              expression)

    def _see(self, matcher: promql_parser.Matcher,
             labels: dict[str, set[str]], expression: str) -> None:
        """See that what a label is to be, or not to be, it can be."""
        if matcher.name in _OWN_LABELS:
            return
        self.assertIn(matcher.name, labels, expression)
        for each in matcher.value.split('|'):
            self.assertTrue(any(
                re.fullmatch(each, value) for value in labels[matcher.name]),
                f'{each} in {expression}')

    def test_what_is_grouped_by_is_exported(self):
        known = _OWN_LABELS | {
            label for labels in self.exported.values() for label in labels}
        for expression in self._expressions():
            for names in re.findall(r'(?:by|without) \(([^)]*)\)',
                                    expression):
                self.assertLessEqual(set(names.split(', ')), known)

    def test_alerts(self):
        self.assertEqual({'groups'}, set(self.rules))
        (group,) = self.rules['groups']
        self.assertEqual({'name', 'rules'}, set(group))
        names = [alert['alert'] for alert in self._alerts()]
        self.assertEqual(len(set(names)), len(names))
        for alert in self._alerts():
            self.assertLessEqual(
                {'alert', 'expr', 'labels', 'annotations'}, set(alert))
            self.assertLessEqual(set(alert), {
                'alert', 'expr', 'for', 'labels', 'annotations'})
            self.assertRegex(alert.get('for', '1m'), f'^{_DURATION}$')
            self.assertIn(alert['labels']['severity'],
                          ('critical', 'warning'))
            self.assertEqual({'summary', 'description', 'runbook_url'},
                             set(alert['annotations']))

    def test_templates_of_alerts_name_labels_that_there_are(self):
        for alert in self._alerts():
            labels = _OWN_LABELS.union(*(
                self.exported[selector.name]
                for selector in self._selectors(alert['expr'])))
            for words in alert['annotations'].values():
                self.assertEqual(words.count('{{'), words.count('}}'))
                self.assertLessEqual(
                    set(re.findall(r'\$labels\.(\w+)', words)), labels)

    def test_every_alert_is_explained(self):
        page = (_ROOT / 'doc/source/alerts.rst').read_text()
        for alert in self._alerts():
            name = alert['alert']
            _, found, rest = page.partition(
                f'\n.. _{name.lower()}:\n\n{name}\n{"=" * len(name)}\n')
            self.assertTrue(found, name)
            self.assertEqual(
                ['What it means', 'Look at', 'Do'],
                re.findall(r'^(\w.*)\n    ', rest.partition('.. _')[0], re.M))
            self.assertEqual(
                f'alerts.html#{name.lower()}',
                alert['annotations']['runbook_url'])

    def test_every_alert_is_tested(self):
        tests = (_ROOT / 'deploy/tests/alerts.yaml').read_text()
        self.assertEqual(
            {alert['alert'] for alert in self._alerts()},
            set(re.findall(r'alertname[:=] ?"?(\w+)"?,?\n', tests)))

    def test_every_metric_is_explained(self):
        for name, labels in self.exported.items():
            label = ''.join(f'{{{each}}}' for each in labels)
            self.assertIn(f'\n   * - ``{name}{label}``\n', self.page)

    def test_what_only_one_driver_exports_is_said(self):
        _, _, words = self.page.partition('\nWith the pool driver there are ')
        for lacks, others in ((words.partition(':')[0], self.by_pool),
                              (words.partition(':')[2].partition('.')[0],
                               self.by_ring)):
            self.assertEqual(
                {name.removeprefix('nova_ironic_ring_')
                 for name in self.exported if name not in others},
                set(re.findall('``(\\w+)``', lacks)))

    def test_alerts_that_do_not_work_with_pools_say_so(self):
        page = (_ROOT / 'doc/source/alerts.rst').read_text()
        for alert in self._alerts():
            section = page.partition(
                f'.. _{alert["alert"].lower()}:')[2].partition('.. _')[0]
            is_for_both = all(
                selector.name in self.by_pool
                for selector in self._selectors(alert['expr']))
            self.assertEqual(
                not is_for_both,
                'The pool driver never raises this alert' in ' '.join(
                    section.split()),
                alert['alert'])

    def test_panels(self):
        panels = self.dashboard['panels']
        self.assertEqual(len(panels), len({panel['id'] for panel in panels}))
        self.assertEqual(len(panels),
                         len({panel['title'] for panel in panels}))
        for panel in panels:
            self.assertIn(panel['type'], ('stat', 'timeseries'))
            self.assertTrue(panel['description'])
            self.assertEqual(
                len(panel['targets']),
                len({target['refId'] for target in panel['targets']}))

    def test_pictures_show_all_panels(self):
        for name in ('dashboard', 'dashboard-pools'):
            drawn = (_ROOT / f'doc/source/images/{name}.svg').read_text()
            shown = set(re.findall(r'>([^<>]+)</text>', drawn))
            self.assertEqual(set(), {
                html.escape(panel['title'], quote=False)
                for panel in self.dashboard['panels']} - shown, name)

    def test_dashboard_needs_nothing_of_the_grafana_that_reads_it(self):
        # What an export for sharing has, and provisioning cannot fill in, and
        # the number that each Grafana gives.
        self.assertEqual(set(), self.dashboard.keys() & {
            '__inputs', '__requires', '__elements', 'id'})
        self.assertRegex(self.dashboard['uid'], r'^[a-zA-Z0-9_-]{1,40}$')
        # What Grafana's models for 11.6 and 12 have. Newer ones convert it.
        self.assertEqual(41, self.dashboard['schemaVersion'])

    def test_data_source_can_be_chosen(self):
        (chosen,) = [each for each in self.dashboard['templating']['list']
                     if each['type'] == 'datasource']
        self.assertEqual(('datasource', 'prometheus'),
                         (chosen['name'], chosen['query']))
        asking = [*self.dashboard['panels'], *(
            target for panel in self.dashboard['panels']
            for target in panel['targets']), *(
                each for each in self.dashboard['templating']['list']
                if each['type'] == 'query')]
        for each in asking:
            self.assertEqual(
                {'type': 'prometheus', 'uid': '${datasource}'},
                each['datasource'])

    def test_panels_have_places_of_their_own(self):
        places = [panel['gridPos'] for panel in self.dashboard['panels']]
        for place in places:
            self.assertLessEqual(place['x'] + place['w'], 24)
        for one, other in itertools.combinations(places, 2):
            self.assertTrue(
                one['x'] + one['w'] <= other['x']
                or other['x'] + other['w'] <= one['x']
                or one['y'] + one['h'] <= other['y']
                or other['y'] + other['h'] <= one['y'], (one, other))

    def test_variables_of_the_dashboard(self):
        names = {each['name'] for each
                 in self.dashboard['templating']['list']}
        text = json.dumps(self.dashboard).replace('$__all', '')
        self.assertEqual(names, set(re.findall(r'\$\{?(\w+)', text)))
