"""Strings: what is said of them together, as one language.

A string language is the intersection of its lengths, patterns and formats over decoded text, then
lifted through JSON's escapes. Lengths count code points (validation 2020-12, section 6.3): a pair
of surrogate escapes is one character, and lone surrogates are excluded. Every distinct language is
one frame.

Cost: lengths alone make 4 terms whatever their size; a pattern as many as it has parts, and one
search for a text of it, to know that there is any.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from grammaton._core import Recognizer, TermStore
from grammaton.errors import GrammarError
from grammaton.grammar.json_schema.content import JSON_CONTENT, json_content_frame
from grammaton.grammar.json_schema.formats import IRREGULAR_FORMATS, format_term
from grammaton.grammar.json_schema.regex_format import regex_frame
from grammaton.grammar.json_schema.text import TextPieces, copied
from grammaton.grammar.regex import pattern_term

if TYPE_CHECKING:
    from grammaton.grammar.json_schema.nodes import Node


class StringFacts(NamedTuple):
    """A conjunction: lengths, patterns and formats, those it lacks, values it is not, and terms of
    decoded texts that it is within."""

    min: int = 0
    max: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    within: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether lengths are all that is said."""
        return not any(self[2:])

    @property
    def irregular(self) -> str | None:
        """A format that is said and has no term."""
        return next((name for name in self.formats if name in IRREGULAR_FORMATS), None)

    @property
    def alone(self) -> str | None:
        """The only format, where nothing else is said."""
        return self.formats[0] if self == StringFacts(formats=self.formats[:1]) else None


class KeySort(NamedTuple):
    """Keys of undeclared properties: none of `excluded`, by the patterns found in them or not.

    `within` are terms of decoded texts that the keys are in; `named` are schemas of keys for which
    that is still to be found (merge.py). `irregular` is a format without a term that they have.
    """

    excluded: frozenset[str]
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    within: tuple[int, ...] = ()
    named: tuple[Node, ...] = ()
    irregular: str | None = None

    @property
    def plain(self) -> bool:
        """Whether it is all keys but the excluded ones."""
        return not (self.found or self.missing or self.within or self.irregular)


ANY_KEY = KeySort(frozenset())


class StringTexts:
    """Builds the terms of strings in one store; each distinct language is made once."""

    def __init__(self, pieces: TextPieces) -> None:
        self.pieces = pieces
        self.store = pieces.store
        self._frames: dict[StringFacts, int] = {}
        self._patterns: dict[str, int] = {}
        self._formats: dict[str, int] = {}
        self._keys: dict[KeySort, int] = {}
        self._sorts: dict[KeySort, int] = {}
        self._listed: dict[frozenset[str], int] = {}
        self._irregular: dict[str, int] = {}
        self._said: dict[int, StringFacts | tuple[str, ...]] = {}
        self._any: int | None = None

    def on(self, pieces: TextPieces) -> StringTexts:
        """These texts, and those made so far, in a copy of their store."""
        texts = object.__new__(StringTexts)
        texts.__dict__.update(copied(self))
        texts.pieces, texts.store = pieces, pieces.store
        return texts

    @property
    def any_string(self) -> int:
        """A string value, quotes included."""
        if self._any is None:
            self._any = self.string(StringFacts())
        return self._any

    def string(self, facts: StringFacts) -> int:
        """A string value with these facts, quotes included; NOTHING if there is none."""
        term = self._frames.get(facts)
        if term is None:
            rest = self._rest(facts)
            term = rest
            if rest != self.store.NOTHING:
                term = self.store.concat([self.pieces.quote, rest])
                self._said[term] = facts
            self._frames[facts] = term
        return term

    def decoded(self, term: int) -> int | None:
        """The decoded texts of a term made by `string` or `values`; None if it was not, or if they
        are no regular language."""
        said = self._said.get(term)
        if isinstance(said, StringFacts):
            return self.text(said) if said.irregular is None else None
        return None if said is None else int(self.store.literals([text.encode() for text in said]))

    def _rest(self, facts: StringFacts) -> int:
        store, pieces = self.store, self.pieces
        least, most = facts.min, facts.max
        if most is not None and most < least:
            return int(store.NOTHING)
        if facts.irregular is not None:
            return self.irregular(facts.irregular)
        if facts.plain:
            if not least and most is None:
                return pieces.any_string_rest
            body = store.repeat(pieces.json_char, least, most)
            return pieces.string_frame(f"STRING {least} to {most}", body)
        text = self.text(facts)
        if facts.alone is None and store.is_empty(text):
            return int(store.NOTHING)
        name = " ".join(("STRING", *facts.formats, *facts.patterns))
        return pieces.string_frame(name[:80], pieces.lift(text))

    def irregular(self, name: str) -> int:
        """The frame of a format without a term: a string's body and closing quote."""
        if name not in self._irregular:
            if self.pieces.spelling.is_free:
                self._irregular[name] = int(self.store.import_term(*_free_frame(name)))
            else:
                self._irregular[name] = _IRREGULAR[name](self.pieces)
        return self._irregular[name]

    def text(self, facts: StringFacts) -> int:
        """The decoded texts of facts."""
        store = self.store
        parts = [self.format(name) for name in facts.formats]
        parts.extend(self.pattern(pattern) for pattern in facts.patterns)
        parts.extend(facts.within)
        if facts.min or facts.max is not None:
            parts.append(store.repeat(self.pieces.any_char, facts.min, facts.max))
        denied = [self.format(name) for name in facts.wrong]
        denied.extend(self.pattern(pattern) for pattern in facts.missing)
        texts = [encoded for text in facts.excluded if (encoded := encode(text)) is not None]
        if texts:
            denied.append(store.literals(texts))
        if denied:
            parts.append(store.complement(store.union(denied)))
        if not parts:
            return int(store.repeat(self.pieces.any_char, 0, None))
        return int(store.intersect(parts)) if len(parts) > 1 else parts[0]

    def pattern(self, pattern: str) -> int:
        """The decoded texts in which a pattern is found."""
        term = self._patterns.get(pattern)
        if term is None:
            term = pattern_term(self.store, pattern, dialect="ecma", search=True)
            self._patterns[pattern] = term
        return term

    def pattern_at(self, pattern: str, pointer: str) -> int:
        """As `pattern`; an error says where in the schema the pattern stands."""
        try:
            return self.pattern(pattern)
        except GrammarError as error:
            raise type(error)(
                f"in the pattern {pattern!r}: {error.message}",
                source=error.source,
                position=error.position,
                end=error.end,
                pointer=pointer,
            ) from None

    def format(self, name: str) -> int:
        """The decoded texts of a format."""
        term = self._formats.get(name)
        if term is None:
            term = self._formats[name] = format_term(self.store, name)
        return term

    def holds(self, facts: StringFacts, value: str) -> bool:
        """Whether a decoded text has these facts."""
        if len(value) < facts.min or (facts.max is not None and len(value) > facts.max):
            return False
        if facts.plain:
            return True
        name = facts.irregular
        if name is not None:
            others = facts._replace(formats=tuple(each for each in facts.formats if each != name))
            return _is_irregular(name, value) and self.holds(others, value)
        return self._matches(self.text(facts), value)

    def found(self, pattern: str, value: str) -> bool:
        """Whether a pattern is found in a decoded text."""
        return self._matches(self.pattern(pattern), value)

    def _matches(self, term: int, value: str) -> bool:
        return bool(self.store.matches(term, value.encode("utf-8", "surrogatepass")))

    def values(self, values: Sequence[str]) -> int:
        """One of finitely many strings, quotes included."""
        store, pieces = self.store, self.pieces
        texts = [value for value in values if encode(value) is not None]
        if not texts:
            return int(store.NOTHING)
        spelled = pieces.spelling.texts(texts)
        if len(texts) == 1:
            term = int(store.concat([pieces.quote, spelled, pieces.quote]))
        else:
            frame = pieces.string_frame("STRINGS", spelled)
            term = int(store.concat([pieces.quote, frame]))
        self._said[term] = tuple(texts)
        return term

    def is_of(self, sort: KeySort, key: str) -> bool:
        """Whether a key is of a sort."""
        return (
            key not in sort.excluded
            and all(self.found(pattern, key) for pattern in sort.found)
            and not any(self.found(pattern, key) for pattern in sort.missing)
            and all(self._matches(term, key) for term in sort.within)
            and (sort.irregular is None or _is_irregular(sort.irregular, key))
        )

    def has_keys(self, sort: KeySort) -> bool:
        """Whether there is any key of a sort."""
        if sort.plain or sort.irregular is not None:
            return True
        return not self.store.is_empty(self._key(sort))

    def key_rest(self, sort: KeySort) -> int:
        """A frame of a key of a sort, after its opening quote."""
        if sort.plain and not sort.excluded:
            return self.pieces.any_string_rest
        if sort.irregular is not None:
            return self.irregular(sort.irregular)
        frame = self._keys.get(sort)
        if frame is None:
            name = " ".join(("KEY", *sort.found))
            frame = self.pieces.string_frame(name[:80], self.pieces.lift(self._key(sort)))
            self._keys[sort] = frame
        return frame

    def key_text(self, sort: KeySort) -> int:
        """The decoded keys of a sort."""
        if sort.plain and not sort.excluded:
            return int(self.store.repeat(self.pieces.any_char, 0, None))
        return self._key(sort)

    def _key(self, sort: KeySort) -> int:
        """The decoded keys of a sort that is not just any string."""
        term = self._sorts.get(sort)
        if term is None:
            store = self.store
            parts = [*sort.within, *(self.pattern(pattern) for pattern in sort.found)]
            others = [self.pattern(pattern) for pattern in sort.missing]
            excluded = self._texts_of(sort.excluded)
            if excluded != store.NOTHING:
                others.append(excluded)
            if others or not parts:  # nothing left out: keys that no JSON text here can spell
                parts.append(store.complement(store.union(others)))
            term = store.intersect(parts) if len(parts) > 1 else parts[0]
            self._sorts[sort] = term
        return term

    def _texts_of(self, keys: frozenset[str]) -> int:
        """Some keys as decoded texts, made once for all sorts that they are left out of."""
        term = self._listed.get(keys)
        if term is None:
            texts = [encoded for key in keys if (encoded := encode(key)) is not None]
            term = int(self.store.literals(texts) if texts else self.store.NOTHING)
            self._listed[keys] = term
        return term


_IRREGULAR = {"regex": regex_frame, JSON_CONTENT: json_content_frame}


@cache
def _free_frame(name: str) -> tuple[TermStore, int]:
    """The frame of a format without a term in any spelling, made once a process."""
    store = TermStore()
    return store, _IRREGULAR[name](TextPieces(store, "compact"))


def _is_irregular(name: str, value: str) -> bool:
    """Whether a decoded text has a format without a term."""
    pieces = TextPieces(TermStore(), "compact")
    start = pieces.store.concat([pieces.quote, StringTexts(pieces).irregular(name)])
    return bool(Recognizer(pieces.store, start).accepts(json.dumps(value).encode()))


def encode(text: str) -> bytes | None:
    """UTF-8, or None for a text with a lone surrogate, which no JSON text here can spell."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
