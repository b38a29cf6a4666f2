# SPDX-License-Identifier: Apache-2.0

"""The patches of a project, as ``git format-patch`` writes them."""

from collections.abc import Mapping
import dataclasses
import email
import email.message
import pathlib
import re

#: The directory that has patches of each project in ``PROJECT/patches``.
CONTRIB = pathlib.Path(__file__).parents[3] / 'contrib'
#: The projects that have patches.
PROJECTS = 'nova', 'placement'

# OpenStack's limits for a commit message, and what its tools, or whoever
# proposes the patch, have to add.
_SUBJECT, _LINE = 50, 72
_NOT_INVENTED = re.compile(
    r'^(?:(?:Closes|Partial|Related)-Bug|Change-Id|Implements|Blueprint'
    r'|Depends-On|Signed-off-by):|bugs\.launchpad\.net|bug\W*\d{4}',
    re.IGNORECASE | re.MULTILINE)
_FILE = re.compile(r'^diff --git a/(\S+) b/(\S+)$', re.MULTILINE)
_TEST = re.compile(r'^\+    def (test_\w+)\(', re.MULTILINE)


class PatchError(Exception):
    """A file is no patch that could be proposed to its project."""


@dataclasses.dataclass(frozen=True)
class Patch:
    """A patch.

    :ivar path: its file
    :ivar subject: the first line of its commit message
    :ivar files: the files of the project that it changes or adds
    :ivar tests: the names of the tests that it adds, by the name of their
        module
    """

    path: pathlib.Path
    subject: str
    files: tuple[str, ...]
    tests: Mapping[str, tuple[str, ...]]


def read_all(project: str, contrib: pathlib.Path = CONTRIB) -> list[Patch]:
    """Read the patches of a project in the order in which they apply.

    :param project: its name, which is that of its package
    :param contrib: as :data:`CONTRIB`
    :raises PatchError: if one is not well-formed, or a number is missing
    """
    paths = sorted((contrib / project / 'patches').glob('*.patch'))
    for number, path in enumerate(paths, 1):
        if not path.name.startswith(f'{number:04}-'):
            raise PatchError(
                f'{path.name}: its name does not begin with {number:04}-.')
    return [read(project, path) for path in paths]


def read(project: str, path: pathlib.Path) -> Patch:
    """Read a patch.

    :param project: the name of its project
    :param path: its file
    :raises PatchError: if it is not well-formed
    """
    message = email.message_from_string(path.read_text())
    text, found, rest = str(message.get_payload()).partition('\n---\n')
    subject = ' '.join(str(message['Subject'] or '').split())
    subject = subject.removeprefix('[PATCH]').strip()
    for is_wrong, why in (
            (not (message['From'] and message['Date']),
             'it has no header From, or no header Date'),
            (not subject or subject.endswith('.') or len(subject) > _SUBJECT,
             f'its subject is missing, ends with a full stop, or has more '
             f'than {_SUBJECT} characters'),
            (not found or not text.strip(),
             'its message does not say why it is needed'),
            (any(len(line) > _LINE for line in text.splitlines()),
             f'a line of its message has more than {_LINE} characters'),
            (not path.read_text().isascii(),
             'it has characters that are not ASCII'),
            (not re.search(r'^Related to: \S', text, re.MULTILINE),
             'no line begins with "Related to:"'),
            (_NOT_INVENTED.search(text),
             'it names a bug, a review or an author, which whoever proposes '
             'it has to add')):
        if is_wrong:
            raise PatchError(f'{path.name}: {why}.')
    files, tests = [], {}
    # After each name of a file comes what is changed in it.
    parts = _FILE.split(rest)[1:]
    for before, after, change in zip(*(parts[at::3] for at in range(3))):
        if before != after:
            raise PatchError(f'{path.name}: it renames {before}.')
        files.append(after)
        if after.startswith(f'{project}/tests/'):
            names = tuple(_TEST.findall(change))
            if names:
                tests[after.removesuffix('.py').replace('/', '.')] = names
    if not tests:
        raise PatchError(f'{path.name}: it adds no test.')
    if not any(each.startswith('releasenotes/notes/') for each in files):
        raise PatchError(f'{path.name}: it adds no release note.')
    return Patch(path, subject, tuple(files), tests)
