# SPDX-License-Identifier: Apache-2.0

import ddt
import hypothesis
from hypothesis import strategies as st
from oslotest import base

from nova_ironic_ring.core.values import bounds

_HUGE = 'x' * 65536
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values))
_NAMES = st.sampled_from(
    ('memory_mb', 'local_gb', 'cpus', 'cpu_arch', 'capabilities'))
_JSON = st.dictionaries(_NAMES, _VALUES | st.lists(
    st.text() | st.from_regex(r'\w+:\w+')).map(','.join))


@ddt.ddt
class PropertiesTestCase(base.BaseTestCase):

    @ddt.data(
        {'memory_mb': 2 * 1024 ** 2, 'local_gb': 7000, 'cpus': 256},
        {'cpu_arch': 'x86_64'}, {'capabilities': 'boot_mode:uefi, raid:1'},
        {'capabilities': 'f\xe4rbe:\U0001f600'}, {'capabilities': ''},
        {'memory_mb': None, 'capabilities': None, 'cpu_arch': None},
        {'capabilities': 'num_cpus:2,number:1,uptime_s:3'},
        {'vendor': _HUGE}, {})
    def test_what_can_be(self, said):
        self.assertEqual(bounds.Properties(said), bounds.properties(said))

    def test_sizes_as_nova_reads_them(self):
        self.assertEqual(
            bounds.Properties({'memory_mb': 8, 'local_gb': 7, 'cpus': 2}),
            bounds.properties({'memory_mb': '8', 'local_gb': 7.9, 'cpus': 2}))

    @hypothesis.given(_JSON)
    @hypothesis.settings(deadline=None, derandomize=True)
    def test_whatever_ironic_has(self, said):
        found = bounds.properties(said)
        for name in 'memory_mb', 'local_gb', 'cpus':
            self.assertLess(-1, found.said.get(name) or 0)
            self.assertLess(found.said.get(name) or 0, bounds.LARGEST)
        self.assertTrue(str(found.said.get('cpu_arch') or '').isprintable())
        self.assertLess(
            len(ascii(found.said.get('capabilities') or '')), 32768)
        # What was mended once stays.
        self.assertEqual(
            bounds.Properties(found.said), bounds.properties(found.said))

    def test_no_properties(self):
        self.assertEqual(bounds.Properties({}), bounds.properties(None))

    @ddt.data(
        2 ** 40, -1, '-1', 'nan', float('nan'), float('inf'), '1e3', '8 GB',
        '\x1b[31m8', {'mb': 1}, [], _HUGE, '9' * 5000, '\U0001f600')
    def test_size_that_cannot_be(self, size):
        found = bounds.properties({
            'memory_mb': size, 'local_gb': size, 'cpus': size,
            'cpu_arch': 'x86_64'})
        self.assertEqual({'memory_mb': 0, 'local_gb': 0, 'cpus': 0,
                          'cpu_arch': 'x86_64'}, found.said)
        self.assertEqual(3, len(found.complaints))
        for complaint in found.complaints:
            self.assertLess(len(complaint), 80)
            self.assertTrue(complaint.isascii() and complaint.isprintable())

    @ddt.data({}, [], ['x86_64'], 7, True, '', '\n', 'x86_64\n', _HUGE)
    def test_architecture_that_cannot_be(self, architecture):
        found = bounds.properties({'cpu_arch': architecture, 'cpus': 4})
        self.assertEqual({'cpus': 4}, found.said)
        self.assertEqual(1, len(found.complaints))

    @ddt.data({'boot_mode': 'uefi'}, ['boot_mode:uefi'], 7)
    def test_capabilities_that_are_no_text(self, capabilities):
        found = bounds.properties({'capabilities': capabilities, 'cpus': 4})
        self.assertEqual({'cpus': 4}, found.said)
        self.assertEqual(1, len(found.complaints))

    @ddt.data('b', 'b:', ':1', 'b:1:2', 'b:\n', 'b:\x1b[2J', f'b:{_HUGE}',
              f'{_HUGE}:1', 'b\x00:1')
    def test_capability_that_cannot_be(self, capability):
        found = bounds.properties({'capabilities': f'a:1,{capability}'})
        self.assertEqual({'capabilities': 'a:1'}, found.said)
        self.assertEqual(1, len(found.complaints))

    @ddt.data('io_workload', 'num_instances', 'failed_builds', ' uptime',
              'num_vm_building', 'num_task_None', 'num_tasks', 'num_proj_x')
    def test_capability_that_nova_counts_itself(self, name):
        found = bounds.properties({'capabilities': f'{name}:x,raid:1'})
        self.assertEqual({'capabilities': 'raid:1'}, found.said)
        self.assertEqual(1, len(found.complaints))

    @ddt.data('x', '\U0001f600')
    def test_too_many_capabilities(self, letter):
        found = bounds.properties({'capabilities': ','.join(
            f'c{number}:{letter * 200}' for number in range(10000))})
        # With all else that a record says of a node.
        self.assertLess(
            len(found.said['capabilities'].encode('ascii', 'backslashreplace')
                ), 32768)
        self.assertIn('c0:', found.said['capabilities'])
        self.assertEqual(1, len(found.complaints))


class TraitsTestCase(base.BaseTestCase):

    def test_what_can_be(self):
        for said in (), ('HW_CPU_X86_AVX', 'CUSTOM_A'), tuple(
                f'HW_CPU_X86_AVX512_{number}' for number in range(50)):
            self.assertEqual(bounds.Traits(said), bounds.traits(said))
        self.assertEqual(bounds.Traits(()), bounds.traits(None))

    def test_too_many(self):
        long = [f'CUSTOM_{number:02}'.ljust(255, 'X') for number in range(49)]
        found = bounds.traits([*long, 'HW_CPU_X86_AVX'])
        self.assertIn('HW_CPU_X86_AVX', found.said)
        self.assertLess(len(','.join(found.said)), 2048)
        self.assertEqual(
            ('there are too many traits, 12558 characters',), found.complaints)
        # In whatever order Ironic tells them, and what was mended once stays.
        self.assertEqual(found, bounds.traits(['HW_CPU_X86_AVX', *long[::-1]]))
        self.assertEqual(found.said, bounds.traits(found.said).said)


@ddt.ddt
class NumberTestCase(base.BaseTestCase):

    @ddt.data((0, 0), (2 ** 31 - 1, 2 ** 31 - 1), (2 ** 31, 2 ** 31 - 1),
              (-2 ** 40, -2 ** 31 + 1))
    @ddt.unpack
    def test_what_a_column_takes(self, number, nearest):
        self.assertEqual(nearest, bounds.number(number))


class LineTestCase(base.BaseTestCase):
    """What is one line of a log or of a terminal."""

    def test_line_that_can_be_shown(self):
        for text in '', 'Zürich: 5 \\ s', '\u6771\u4eac':
            self.assertEqual(text, bounds.line(text))

    def test_what_would_be_something_else(self):
        self.assertEqual(
            r'a\nb\r\x1b[2K\x00\u2028\u202e\ud800\U000e0001',
            bounds.line('a\nb\r\x1b[2K\0\u2028\u202e\ud800\U000e0001'))

    def test_length(self):
        self.assertEqual('x' * 8192, bounds.line('x' * 8192))
        self.assertEqual('x' * 8192 + '...', bounds.line('x' * 8193))
