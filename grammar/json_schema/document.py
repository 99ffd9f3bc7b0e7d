"""The schema as read: its JSON, the drafts, and where a reference leads.

A *document* is one schema with everything it contains. A *resource* is a part of it with a URI of
its own: the document itself, and every subschema with an `$id` (`id` up to draft 4). References
are resolved against the resource they stand in (JSON Schema core 2020-12, section 8.2), JSON
Pointers by RFC 6901. An *address* is what a reference leads to: a raw schema, its pointer from the
document's root and the resource it belongs to.

Reading costs one `json.loads`; a plain `#/...` reference costs one dictionary step a token. The
index of ids and anchors is built only when a reference needs it. Which resources a schema was
reached through is kept only for documents with a `$dynamicRef` or `$recursiveRef` in use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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


_VALIDATION = frozenset(
    (
        *("type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum"),
        *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems"),
        *("uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties"),
        *("required", "dependentRequired"),
    )
)
"""The keywords of the vocabulary for validation."""
_UNEVALUATED = frozenset(("unevaluatedItems", "unevaluatedProperties"))


class Resource:
    """A schema with a URI of its own: the URI, the raw schema, its pointer in the document, its
    draft, and the keywords that its dialect does not have.

    `dynamic` are its dynamic anchors, `$recursiveAnchor` under "". `scope` holds the resources with
    any that a reference came through, outermost first, this one included (core 2020-12, section
    7.1): one resource reached in different ways is as many of these, made by `Document.entered`.
    """

    __slots__ = ("base", "draft", "dynamic", "lacking", "pointer", "root", "scope", "uri", "ways")

    def __init__(
        self, uri: str, root: Any, pointer: str, draft: int, lacking: frozenset[str] = frozenset()
    ) -> None:
        self.uri = uri
        self.root = root
        self.pointer = pointer
        self.draft = draft
        self.lacking = lacking
        self.dynamic: dict[str, Address] = {}
        self.base = self
        self.scope: tuple[Resource, ...] = ()
        self.ways: dict[tuple[Resource, ...], Resource] = {}

    @property
    def id_keyword(self) -> str:
        """The keyword that gives a schema its URI."""
        return "id" if self.draft <= DRAFT_4 else "$id"


class Address(NamedTuple):
    """Where a reference leads."""

    raw: Any
    pointer: str
    resource: Resource


MAX_TEXT = 8 * 2**20
"""Characters, or bytes, that the text of a schema may have."""


def escape(token: str) -> str:
    """A key as a token of a JSON Pointer (RFC 6901, section 3)."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


def read(schema: object) -> Any:
    """The schema as Python data; text is parsed with decimals kept exact.

    Raises:
        GrammarError: the text is not JSON (line and column), or the bytes are not UTF-8.
        LimitExceeded: it is longer than `MAX_TEXT`.
    """
    if isinstance(schema, (str, bytes, bytearray)) and len(schema) > MAX_TEXT:
        raise LimitExceeded(f"the schema's text is longer than {MAX_TEXT}")
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


class NeedsScope(Exception):
    """A reference depends on how its schema was reached, which the document does not track."""


class Document:
    """One schema document: its draft, its resources, its references.

    Args:
        root: the schema as Python data (a dict or a bool).
        resources: schemas that references may lead to, by URI; as data or JSON text.
        tracking: keep what each schema was reached through.

    Raises:
        GrammarError: the root is not a schema.
        UnsupportedKeyword: the schema is written in draft 3.
    """

    def __init__(
        self, root: Any, resources: Mapping[str, object] | None = None, *, tracking: bool = False
    ) -> None:
        if not isinstance(root, (dict, bool)):
            raise GrammarError(
                f"a schema is an object or a boolean, not {describe(root)}", pointer=""
            )
        self.root = root
        self.tracking = tracking
        self._given = {urldefrag(uri)[0]: schema for uri, schema in (resources or {}).items()}
        self._index: dict[str, Address] | None = None
        self._bases: dict[int, Resource] = {}
        draft, lacking = DRAFT_2020, frozenset[str]()
        if isinstance(root, dict) and "$schema" in root:
            draft, lacking = self._dialect(root["$schema"], "/$schema")
        self.draft = draft
        self.resource = Resource("", root, "", draft, lacking)
        own = self.own_id(root, self.resource)
        if own:
            self.resource.uri = urldefrag(own)[0]
        self._bases[id(root)] = self.resource
        if tracking:
            self._ids()
            self.resource = self.entered(self.resource, ())

    def _dialect(self, uri: object, pointer: str) -> tuple[int, frozenset[str]]:
        """The draft that a `$schema` names, and the keywords that its vocabularies leave out."""
        if not isinstance(uri, str):
            raise GrammarError("'$schema' is a URI, so a string", pointer=pointer)
        for name, draft in _DRAFTS.items():
            if f"json-schema.org/{name}" in uri:
                if draft == DRAFT_3:
                    raise UnsupportedKeyword(
                        "schemas of draft 3 are not supported", pointer=pointer
                    )
                return draft, frozenset()
        meta = self._given.get(urldefrag(uri)[0])
        if isinstance(meta, dict) and meta.get("$schema") not in (None, uri):
            draft, lacking = self._dialect(meta["$schema"], pointer)
            named = meta.get("$vocabulary")
            if isinstance(named, dict) and not any("vocab/validation" in each for each in named):
                lacking = lacking | _VALIDATION
            return draft, lacking
        return DRAFT_2020, frozenset()

    @cached_property
    def speaks_of_unevaluated(self) -> bool:
        """Whether unevaluatedProperties or unevaluatedItems stands anywhere."""
        todo = [self.root, *(each.root for each in self._bases.values()), *self._given.values()]
        while todo:
            part = todo.pop()
            if isinstance(part, dict):
                if not _UNEVALUATED.isdisjoint(part):
                    return True
                todo.extend(part.values())
            elif isinstance(part, list):
                todo.extend(part)
        return False

    def own_id(self, raw: dict[str, Any] | bool, resource: Resource) -> str | None:
        """The URI a raw schema gives itself, if it starts a resource (not a bare `#name`)."""
        if isinstance(raw, bool):
            return None
        uri = raw.get(resource.id_keyword)
        if not isinstance(uri, str) or uri.startswith("#"):
            return None
        if resource.draft <= DRAFT_7 and "$ref" in raw:
            return None
        return uri

    def entered(self, resource: Resource, scope: tuple[Resource, ...]) -> Resource:
        """A resource as it is when it is reached through others."""
        base = resource.base
        if not self.tracking:
            return base
        if base.dynamic and base not in scope:
            scope = (*scope, base)
        way = base.ways.get(scope)
        if way is None:
            way = Resource(base.uri, base.root, base.pointer, base.draft, base.lacking)
            way.dynamic, way.base, way.scope = base.dynamic, base, scope
            base.ways[scope] = way
        return way

    def resource_of(self, raw: Any, pointer: str, outer: Resource) -> Resource:
        """The resource a subschema belongs to, given the one around it."""
        if not isinstance(raw, dict) or raw is outer.root:
            return outer
        if outer.id_keyword not in raw:
            return outer
        draft, lacking = outer.draft, outer.lacking
        if "$schema" in raw:
            draft, lacking = self._dialect(raw["$schema"], f"{pointer}/$schema")
        base = self._bases.get(id(raw))
        if base is None:
            uri = self.own_id(raw, outer)
            if uri is None:
                return outer
            base = Resource(urldefrag(urljoin(outer.uri, uri))[0], raw, pointer, draft, lacking)
            self._bases[id(raw)] = base
        return self.entered(base, outer.scope)

    def resolve(self, reference: str, resource: Resource, pointer: str) -> Address:
        """Where `$ref` leads.

        Args:
            reference: the value of `$ref`, a URI reference.
            resource: the resource it stands in.
            pointer: JSON Pointer to the `$ref` itself, for errors.

        Raises:
            GrammarError: nothing is there, or it is not a schema.
            UnsupportedKeyword: it leads out of the document and the given resources.
        """
        raw, place, found = self._resolve(reference, resource, pointer)
        return Address(raw, place, self.entered(found, resource.scope))

    def resolve_dynamic(
        self, keyword: str, reference: str, resource: Resource, pointer: str
    ) -> Address:
        """Where `$dynamicRef` (core 2020-12, section 8.2.3.2) or `$recursiveRef` (2019-09, section
        8.2.4.2.1) leads; otherwise as `resolve`.

        Raises:
            NeedsScope: that depends on what is not tracked.
        """
        raw, place, found = self._resolve(reference, resource, pointer)
        name = "" if keyword == "$recursiveRef" else unquote(urldefrag(reference)[1])
        self._ids()
        anchored = found.base.dynamic.get(name)
        if anchored is not None and anchored.raw is raw:
            if not self.tracking:
                raise NeedsScope
            for outer in resource.scope:
                if name in outer.dynamic:
                    raw, place, found = outer.dynamic[name]
                    break
        return Address(raw, place, self.entered(found, resource.scope))

    def _resolve(self, reference: str, resource: Resource, pointer: str) -> Address:
        resource = resource.base
        start = Address(resource.root, resource.pointer, resource)
        uri, fragment = resource.uri, reference[1:]
        if not reference.startswith("#"):
            uri, fragment = urldefrag(urljoin(resource.uri, reference))
            named = self._ids().get(uri) or self._given_at(uri)
            if named is not None:
                start = named
            elif uri == self.resource.uri:
                start = Address(self.root, "", self.resource.base)
            else:
                raise UnsupportedKeyword(
                    f"the reference {reference!r} leads out of the schema to {uri!r}, which is not "
                    "among the given resources",
                    pointer=pointer,
                )
            uri = start.resource.uri
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
            resource = self.resource_of(raw, place, resource).base
        if not isinstance(raw, (dict, bool)):
            raise GrammarError(
                f"the reference {reference!r} leads to {describe(raw)}, which is not a schema",
                pointer=pointer,
            )
        return Address(raw, place, resource)

    def _ids(self) -> dict[str, Address]:
        """URIs and `uri#anchor`s of every subschema; built at the first need."""
        if self._index is None:
            self._index = {}
            self._add_ids(self.root, "", self._bases[id(self.root)])
        return self._index

    def _given_at(self, uri: str) -> Address | None:
        """A given resource, or one inside of those, read at the first need."""
        wanted = [uri] if uri in self._given else list(self._given)
        for each in wanted:
            if each not in self._given:
                continue
            raw = read(self._given.pop(each))
            if isinstance(raw, bool):
                raw = {} if raw else {"not": {}}
            if not isinstance(raw, dict):
                raise GrammarError(
                    f"a schema is an object or a boolean, not {describe(raw)}", pointer=f"{each}#"
                )
            draft, lacking = self.draft, frozenset[str]()
            if "$schema" in raw:
                draft, lacking = self._dialect(raw["$schema"], f"{each}#/$schema")
            base = Resource(each, raw, f"{each}#", draft, lacking)
            own = self.own_id(raw, base)
            if own:
                base.uri = urldefrag(urljoin(each, own))[0]
            self._bases[id(raw)] = base
            self._ids().setdefault(each, Address(raw, f"{each}#", base))
            self._add_ids(raw, f"{each}#", base)
        return self._ids().get(uri)

    def _add_ids(self, root: Any, pointer: str, resource: Resource) -> None:
        index = self._index
        assert index is not None
        todo = [Address(root, pointer, resource)]
        while todo:
            raw, pointer, resource = todo.pop()
            if not isinstance(raw, dict):
                continue
            resource = self.resource_of(raw, pointer, resource).base
            address = Address(raw, pointer, resource)
            if resource.root is raw and resource.uri:
                index.setdefault(resource.uri, address)
            for anchor in self._anchors(raw, resource):
                index.setdefault(f"{resource.uri}#{anchor}", address)
            if resource.draft >= DRAFT_2020 and isinstance(raw.get("$dynamicAnchor"), str):
                resource.dynamic.setdefault(raw["$dynamicAnchor"], address)
            recursive = resource.draft == DRAFT_2019 and raw.get("$recursiveAnchor") is True
            if recursive and resource.root is raw:
                resource.dynamic[""] = address
            todo.extend(
                Address(child, place, resource) for child, place in subschemas(raw, pointer)
            )

    def _anchors(self, raw: dict[str, Any], resource: Resource) -> Iterator[str]:
        names = []
        if resource.draft >= DRAFT_2019:
            names = [raw.get("$anchor"), raw.get("$dynamicAnchor")]
        uri = raw.get(resource.id_keyword)
        if resource.draft <= DRAFT_7 and isinstance(uri, str) and uri.startswith("#"):
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
