"""The schema as read: its JSON, the drafts, and where a reference leads.

A *document* is one schema with everything it contains. A *resource* is a part of it with a URI of
its own: the document itself, and every subschema with an `$id` (`id` up to draft 4). References
are resolved against the resource they stand in (JSON Schema core 2020-12, section 8.2), JSON
Pointers by RFC 6901. An *address* is what a reference leads to: a raw schema, its pointer from the
document's root and the resource it belongs to.

Reading costs one `json.loads`; a plain `#/...` reference costs one dictionary step a token. The
index of ids and anchors is built only when a reference needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from grammaton.errors import GrammarError, LimitExceeded, UnsupportedKeyword

DRAFT_3, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020 = 3, 4, 6, 7, 2019, 2020

_DRAFTS = {
    "draft-03": DRAFT_3,
    "draft-04": DRAFT_4,
    "draft-06": DRAFT_6,
    "draft-07": DRAFT_7,
    "draft/2019-09": DRAFT_2019,
    "draft/2020-12": DRAFT_2020,
}

SCHEMA_MAPS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
)
SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
SCHEMA_VALUES = frozenset(
    (
        *("items", "additionalItems", "contains", "unevaluatedItems", "contentSchema"),
        *("additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("not", "if", "then", "else"),
    )
)


_UNEVALUATED = frozenset(("unevaluatedItems", "unevaluatedProperties"))


class Resource(NamedTuple):
    """A schema with a URI of its own: the URI, the raw schema, its pointer in the document."""

    uri: str
    root: Any
    pointer: str


class Address(NamedTuple):
    """Where a reference leads."""

    raw: Any
    pointer: str
    resource: Resource


def escape(token: str) -> str:
    """A key as a token of a JSON Pointer (RFC 6901, section 3)."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


def read(schema: object) -> Any:
    """The schema as Python data; text is parsed with decimals kept exact.

    Raises:
        GrammarError: the text is not JSON (line and column), or the bytes are not UTF-8.
    """
    if isinstance(schema, (bytes, bytearray)):
        try:
            schema = bytes(schema).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise GrammarError(
                f"the schema is not UTF-8: byte {error.start} is not part of a character"
            ) from None
    if not isinstance(schema, str):
        return schema
    text = schema.removeprefix("\ufeff")
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise GrammarError(
            f"the schema is not JSON: {error.msg}", source=text, position=error.pos
        ) from None
    except RecursionError:
        raise LimitExceeded("the schema nests too deeply to be read") from None
    except ValueError:
        raise LimitExceeded("the schema has an integer of too many digits to be read") from None


def _no_constant(name: str) -> object:
    raise GrammarError(f"the schema is not JSON: {name} is no JSON number")


class Document:
    """One schema document: its draft, its resources, its references.

    Args:
        root: the schema as Python data (a dict or a bool).

    Raises:
        GrammarError: the root is not a schema.
        UnsupportedKeyword: the schema is written in draft 3.
    """

    def __init__(self, root: Any) -> None:
        if not isinstance(root, (dict, bool)):
            raise GrammarError(
                f"a schema is an object or a boolean, not {describe(root)}", pointer=""
            )
        self.root = root
        self.draft = DRAFT_2020
        if isinstance(root, dict):
            self.draft = _draft_of(root)
        self.id_keyword = "id" if self.draft <= DRAFT_4 else "$id"
        self.resource = Resource("", root, "")
        own = self.own_id(root)
        if own:
            self.resource = Resource(urldefrag(own)[0], root, "")
        self._index: dict[str, Address] | None = None

    @cached_property
    def speaks_of_unevaluated(self) -> bool:
        """Whether unevaluatedProperties or unevaluatedItems stands anywhere."""
        todo = [self.root]
        while todo:
            part = todo.pop()
            if isinstance(part, dict):
                if not _UNEVALUATED.isdisjoint(part):
                    return True
                todo.extend(part.values())
            elif isinstance(part, list):
                todo.extend(part)
        return False

    def own_id(self, raw: dict[str, Any] | bool) -> str | None:
        """The URI a raw schema gives itself, if it starts a resource (not a bare `#name`)."""
        if isinstance(raw, bool):
            return None
        uri = raw.get(self.id_keyword)
        if not isinstance(uri, str) or uri.startswith("#"):
            return None
        if self.draft <= DRAFT_7 and "$ref" in raw:
            return None
        return uri

    def resource_of(self, raw: Any, pointer: str, outer: Resource) -> Resource:
        """The resource a subschema belongs to, given the one around it."""
        if not isinstance(raw, dict) or self.id_keyword not in raw or not pointer:
            return outer
        uri = self.own_id(raw)
        if uri is None:
            return outer
        return Resource(urldefrag(urljoin(outer.uri, uri))[0], raw, pointer)

    def resolve(self, reference: str, resource: Resource, pointer: str) -> Address:
        """Where `$ref` leads.

        Args:
            reference: the value of `$ref`, a URI reference.
            resource: the resource it stands in.
            pointer: JSON Pointer to the `$ref` itself, for errors.

        Raises:
            GrammarError: nothing is there, or it is not a schema.
            UnsupportedKeyword: it leads out of the document.
        """
        start = Address(resource.root, resource.pointer, resource)
        uri, fragment = resource.uri, reference[1:]
        if not reference.startswith("#"):
            uri, fragment = urldefrag(urljoin(resource.uri, reference))
            named = self._ids().get(uri)
            if named is not None:
                start = named
            elif uri == self.resource.uri:
                start = Address(self.root, "", self.resource)
            else:
                raise UnsupportedKeyword(
                    f"the reference {reference!r} leads out of the schema to {uri!r}; "
                    "only references within one document are supported yet",
                    pointer=pointer,
                )
        fragment = unquote(fragment)
        if not fragment:
            return start
        if fragment.startswith("/"):
            return self._walk(fragment, start, reference, pointer)
        found = self._ids().get(f"{uri}#{fragment}")
        if found is None:
            raise GrammarError(
                f"the reference {reference!r} leads nowhere: no schema has that anchor",
                pointer=pointer,
            )
        return found

    def _walk(self, fragment: str, start: Address, reference: str, pointer: str) -> Address:
        raw, place, resource = start
        for part in fragment.split("/")[1:]:
            token = part.replace("~1", "/").replace("~0", "~") if "~" in part else part
            if isinstance(raw, dict) and token in raw:
                raw = raw[token]
            elif isinstance(raw, list) and _is_index(token) and int(token) < len(raw):
                raw = raw[int(token)]
            else:
                raise GrammarError(
                    f"the reference {reference!r} leads nowhere: "
                    f"{place or 'the root'} has no {token!r}",
                    pointer=pointer,
                )
            place = f"{place}/{part}"
            resource = self.resource_of(raw, place, resource)
        if not isinstance(raw, (dict, bool)):
            raise GrammarError(
                f"the reference {reference!r} leads to {describe(raw)}, which is not a schema",
                pointer=pointer,
            )
        return Address(raw, place, resource)

    def _ids(self) -> dict[str, Address]:
        """URIs and `uri#anchor`s of every subschema; built at the first need."""
        if self._index is None:
            index: dict[str, Address] = {}
            todo = [Address(self.root, "", self.resource)]
            while todo:
                raw, pointer, resource = todo.pop()
                if not isinstance(raw, dict):
                    continue
                if pointer:
                    resource = self.resource_of(raw, pointer, resource)
                address = Address(raw, pointer, resource)
                if resource.root is raw and resource.uri:
                    index.setdefault(resource.uri, address)
                for anchor in self._anchors(raw):
                    index.setdefault(f"{resource.uri}#{anchor}", address)
                todo.extend(
                    Address(child, place, resource) for child, place in subschemas(raw, pointer)
                )
            self._index = index
        return self._index

    def _anchors(self, raw: dict[str, Any]) -> Iterator[str]:
        names = [raw.get("$anchor"), raw.get("$dynamicAnchor")]
        uri = raw.get(self.id_keyword)
        if self.draft <= DRAFT_7 and isinstance(uri, str) and uri.startswith("#"):
            names.append(uri[1:])
        return (name for name in names if isinstance(name, str))


def subschemas(raw: dict[str, Any], pointer: str) -> Iterator[tuple[Any, str]]:
    """The schemas directly inside one, with their pointers."""
    for keyword, value in raw.items():
        if isinstance(value, dict):
            if keyword in SCHEMA_MAPS:
                for name, child in value.items():
                    yield child, f"{pointer}/{keyword}/{escape(str(name))}"
            elif keyword in SCHEMA_VALUES:
                yield value, f"{pointer}/{keyword}"
        elif isinstance(value, list) and keyword in SCHEMA_LISTS:
            for i, child in enumerate(value):
                yield child, f"{pointer}/{keyword}/{i}"


def describe(value: object) -> str:
    """What kind of thing stands where a schema should, in a reader's words."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, (int, float, Decimal)):
        return "a number"
    return f"a value of type {type(value).__name__}"


def _is_index(token: str) -> bool:
    return token.isascii() and token.isdigit() and (token == "0" or token[0] != "0")


def _draft_of(root: dict[str, Any]) -> int:
    uri = root.get("$schema")
    if uri is None:
        return DRAFT_2020
    if not isinstance(uri, str):
        raise GrammarError("'$schema' is a URI, so a string", pointer="/$schema")
    for name, draft in _DRAFTS.items():
        if f"json-schema.org/{name}" in uri:
            if draft == DRAFT_3:
                raise UnsupportedKeyword("schemas of draft 3 are not supported", pointer="/$schema")
            return draft
    return DRAFT_2020
