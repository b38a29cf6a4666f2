# SPDX-License-Identifier: Apache-2.0

"""Limits how deep the JSON is that a service answers with.

The owner of a node may nest its properties in Ironic as deep as Ironic's own
JSON goes. Reading, comparing and printing such a value needs more of Python's
stack than there is, and would fail for all nodes of the answer.
"""

from collections.abc import Iterator
import re
from typing import Any

import requests
from requests import structures

# Levels that are kept. A page of nodes has a handful.
LEVELS = 32

# A string as a whole: what is in it opens and closes nothing.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)


class Response(requests.Response):
    """An answer, of which what is nested too deep is left out."""

    def json(self, **kwargs: Any) -> Any:
        """Decode the body.

        :param kwargs: as requests has them
        :returns: the value, with None in place of each list and object that
            is nested deeper than :data:`LEVELS`
        :raises requests.exceptions.JSONDecodeError: if the body is no JSON
        """
        try:
            found = super().json(**kwargs)
        except RecursionError:
            found = self._shallow().json(**kwargs)
        _cut(found, LEVELS)
        return found

    def _shallow(self) -> requests.Response:
        """Return the same answer with a shallow body."""
        shallow = requests.Response()
        shallow.headers = structures.CaseInsensitiveDict(self.headers)
        shallow.encoding = 'utf-8'
        shallow._content = ''.join(_kept(self.text)).encode()
        return shallow


def read_shallow(answer: requests.Response) -> None:
    """Have an answer leave out what is nested too deep.

    :param answer: the answer, of any class that requests, or a test, may have
    """
    if type(answer) is requests.Response:
        answer.__class__ = Response


def _kept(text: str) -> Iterator[str]:
    """Return the parts of a JSON text that are not nested too deep."""
    level = begin = 0
    for token in _TOKEN.finditer(text):
        if token[0] in '[{':
            level += 1
            if level == LEVELS + 1:
                yield text[begin:token.start()]
                yield 'null'
        elif token[0] in ']}':
            if level == LEVELS + 1:
                begin = token.end()
            level -= 1
    # Of a text that ends too deep there is nothing more to keep.
    if level <= LEVELS:
        yield text[begin:]


def _cut(found: Any, levels: int) -> None:
    """Replace what is nested too deep by None."""
    if isinstance(found, dict):
        inner = list(found.items())
    elif isinstance(found, list):
        inner = list(enumerate(found))
    else:
        return
    for key, value in inner:
        if isinstance(value, (dict, list)):
            if levels == 1:
                found[key] = None
            else:
                _cut(value, levels - 1)
