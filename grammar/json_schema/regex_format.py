"""The format `regex`: patterns of ECMA-262 with the flag `u`, as a rule of its own.

Parentheses nest, so this is no regular language and no term: it stands alone, not beside other
formats, patterns or lengths. It is a stated approximation from inside (ECMA-262, section 22.2.1):
every text of it is a pattern, and of the patterns it lacks

- back-references (`\\1`, `\\k<name>`) but those, outside of parentheses, to a named group before
  them that stands outside of parentheses, its name at most `MAX_NAME` characters long,
- the escape `\\0`, and all named groups but one,
- counts `{m,n}` above 99,
- ranges in classes whose ends are not printable ASCII characters written as they are,
- property escapes but those of general categories.

A name is kept in the counters of a template, one for each character.

Cost: some 800 terms, made at the first use in a store.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from grammaton.grammar.json_schema.text import TextPieces
from grammaton.grammar.regex import pattern_term

_CATEGORIES = (
    *("C", "Cc", "Cf", "Cn", "Co", "L", "LC", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn"),
    *("N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm"),
    *("So", "Z", "Zl", "Zp", "Zs", "Letter", "Number", "Punctuation", "Symbol", "Separator"),
)
_ESCAPE = (
    r"\\(?:[dDsSwWtnvfr^$\\.*+?()\[\]{}|/]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    rf"|u\{{0*(?:10|[0-9A-Fa-f])?[0-9A-Fa-f]{{1,4}}\}}|[pP]\{{(?:{'|'.join(_CATEGORIES)})\}})"
)
_SINGLE = r"[^\^$\\.*+?()\[\]{}|]|\."
_MOST_COUNT = 99
_ASSERTION = r"[\^$]|\\[bB]"


MAX_NAME = 2
"""Characters of the name of a group that is referred to. Each name is a state of its own: with
three characters a mask after `(?<` makes over 100,000 terms, with two 10,000."""
_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz$_0123456789"
_NOT_FIRST = 10
"""So many of them, at the end, begin no name."""


def regex_frame(pieces: TextPieces) -> int:
    """A string's body and closing quote, the string being a regular expression."""
    return _RegexTexts(pieces).frame()


class _RegexTexts:
    """The rule of regular expressions in one store."""

    def __init__(self, pieces: TextPieces) -> None:
        self.pieces = pieces
        self.store = pieces.store

    def frame(self) -> int:
        """A string's body and closing quote."""
        store, quote = self.store, self.pieces.quote
        plain = self._plain()
        named = self._named(plain)
        bodies = [store.concat([plain, quote]), store.concat([named, quote])]
        return self.pieces.frame("REGEX", store.union([*bodies, self._referring(plain)]))

    def _referring(self, plain: int) -> int:
        """Patterns with a named group and references to it, and the closing quote.

        Counter 0 is the length of the name, counter 1 how much of it a reference has repeated,
        counter 2 + i the number of its character i.
        """
        store, concat = self.store, self.store.concat
        empty = store.EMPTY
        name, after, again = (store.rule(each) for each in ("NAME", "AFTER_NAME", "NAME_AGAIN"))
        quantifier = self.quantifier
        close, end = self._text(r"\)"), self._text(">")
        characters = [self.pieces.lift(store.literal(each.encode())) for each in _NAME]
        named: list[Any] = [
            (
                concat([end, plain, close, quantifier]),
                *(after, empty, [("between", 0, 1, MAX_NAME)], []),
            )
        ]
        repeated: list[Any] = []
        for place in range(MAX_NAME):
            first = len(characters) - (0 if place else _NOT_FIRST)
            for number, character in enumerate(characters[:first]):
                here: list[Any] = [("between", 0, place, place)]
                taken: list[Any] = [("add", 0, 1, MAX_NAME), ("set", 2 + place, number)]
                named.append((character, name, empty, here, taken))
                same = [("between", 1, place, place), ("between", 2 + place, number, number)]
                longer = ("between", 0, place + 1, MAX_NAME)
                go_on = [("add", 1, 1, MAX_NAME)]
                repeated.append((character, again, empty, [*same, longer], go_on))
            whole = [("between", 0, place + 1, place + 1), ("between", 1, place + 1, place + 1)]
            repeated.append((concat([end, quantifier]), after, empty, whole, [("set", 1, 0)]))
        store.define_template(name, named)
        store.define_template(again, repeated)
        store.define_template(
            after,
            [
                (concat([plain, self._text(r"\\k<")]), again, empty, [], []),
                (concat([plain, self.pieces.quote]), -1, empty, [], []),
            ],
        )
        start = store.call(name, store.param(counters=(0, 0)))
        return int(concat([plain, self._text(r"\(\?<"), start]))

    def _text(self, pattern: str) -> int:
        """The JSON spellings of the texts of a (regular) pattern."""
        return self.pieces.lift(pattern_term(self.store, pattern, search=False))

    def _plain(self) -> int:
        """Patterns without named groups.

        What stands between their parentheses is a rule of its own: a term without calls, whose
        mask every pattern shares. In one loop with the groups each state took 20 ms.
        """
        store, concat = self.store, self.store.concat
        between, group = store.rule("REGEX_TEXT"), store.rule("REGEX_GROUP")
        atom = store.union([self._text(_SINGLE), self._text(_ESCAPE), self._class()])
        items = [concat([atom, self.quantifier]), self._text(_ASSERTION + r"|\|")]
        store.define(between, store.repeat(store.union(items), 0, None))
        text = store.call(between)
        plain = int(concat([text, store.repeat(concat([store.call(group), text]), 0, None)]))
        store.define(group, self._around(plain))
        return plain

    def _named(self, plain: int) -> int:
        """Patterns with exactly one named group."""
        store, concat = self.store, self.store.concat
        rule = store.rule("NAMED_REGEX")
        name = self._text(r"\(\?<[A-Za-z_$][A-Za-z0-9_$]*>")
        group = concat([name, plain, self._text(r"\)"), self.quantifier])
        one = store.union([group, self._around(store.call(rule))])
        store.define(rule, concat([plain, one, plain]))
        return int(store.call(rule))

    def _around(self, inside: int) -> int:
        """A group or an assertion of it."""
        concat, close = self.store.concat, self._text(r"\)")
        groups, looks = self._text(r"\((?:\?:)?"), self._text(r"\(\?<?[=!]")
        grouped = concat([groups, inside, close, self.quantifier])
        return int(self.store.union([grouped, concat([looks, inside, close])]))

    @cached_property
    def quantifier(self) -> int:
        """A quantifier or nothing."""
        store = self.store
        counts = [str(number) for number in range(_MOST_COUNT + 1)]
        ranges = []
        for number in range(0, _MOST_COUNT + 1, 10):
            # The counts from number to number + 9, and what is at least as much.
            tens = str(number // 10) if number else ""
            more = store.literals([each.encode() for each in counts[number + 10 :]])
            for digit in range(10):
                low = f"{{{tens}{digit},".encode()
                rest = store.chars([(48 + digit, 57)])
                high = store.concat([store.literal(tens.encode()), rest])
                ranges.append(store.concat([store.literal(low), store.union([high, more])]))
        counted = store.concat([store.union(ranges), store.literal(b"}")])
        plain = pattern_term(store, r"[*+?]|\{[0-9]{1,9},?\}", search=False)
        lazy = pattern_term(store, r"\??", search=False)
        some = self.pieces.lift(store.concat([store.union([plain, counted]), lazy]))
        return int(store.union([store.EMPTY, some]))

    def _class(self) -> int:
        """A character class; a hyphen that stands for itself is its first or last character."""
        store = self.store
        printable = [code for code in range(32, 127) if chr(code) not in "\\]-"]
        ranges = [
            store.concat(
                [
                    store.literal(f"{chr(code)}-".encode()),
                    store.chars([(each, each) for each in printable if each >= code]),
                ]
            )
            for code in printable
        ]
        single = pattern_term(store, r"[^\\\]\-]|\\-|" + _ESCAPE, search=False)
        hyphen = pattern_term(store, "-?", search=False)
        body = store.repeat(store.union([single, *ranges]), 0, None)
        opening = pattern_term(store, r"\[\^?", search=False)
        closing = pattern_term(store, r"\]", search=False)
        return self.pieces.lift(store.concat([opening, hyphen, body, hyphen, closing]))
