"""The text form of a grammar: `to_text` writes it, `from_text` reads it (docs/text-form.md).

A *text* is a list of rules `name ::= expression`, one of them named `start`. It is canonical rather
than faithful: what the store has normalised is written as the store holds it, alternatives are
sorted, and rules come in the order of their first mention. So printing what was parsed from a
printed text gives that text again, and grammars of equal structure have equal texts.

Reading is linear in the text, with a stack of its own, so that deep nesting cannot exhaust
Python's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError
from grammaton.grammar.ebnf_nodes import RulePlaces, Source, Span
from grammaton.grammar.missing_start import missing_start
from grammaton.grammar.text_printer import RESERVED, to_text
from grammaton.grammar.text_scanner import Token, scan

if TYPE_CHECKING:
    from grammaton._core import Alternative, Condition, TermStore, Update

__all__ = ["from_text", "to_text"]

MAX_COUNT = 2**32 - 2
_LIFTS = ("json", "distinct", "distinct_text")
"""Operators in front of a parenthesis with a regular expression."""
_QUANTIFIERS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def from_text(store: TermStore, text: str, rule_places: RulePlaces | None = None) -> int:
    """Reads a text form into a store and returns the start term.

    `rule_places` is filled with where rules are defined.

    Raises:
        GrammarError: a syntax error, a rule that is missing, defined twice or misused, with its
            span.
    """
    parser = _Parser(store, text)
    start = parser.grammar()
    if rule_places is not None:
        rule_places.update(parser.places())
    return start


@dataclass
class _Group:
    """An open parenthesis, or a whole expression: what was read of it so far."""

    lift: Token | None = None
    """The `json`, or another of `_LIFTS`, before the parenthesis."""
    branches: list[int] = field(default_factory=list)
    meets: list[int] = field(default_factory=list)
    operators: list[Token] = field(default_factory=list)
    """The `&` between the meets."""
    parts: list[tuple[int, list[Token]]] = field(default_factory=list)
    """Items of the sequence being read, each with the `~` before it."""
    nots: list[Token] = field(default_factory=list)


class _Parser:
    def __init__(self, store: TermStore, text: str) -> None:
        self._store = store
        self._text = text
        self._tokens = scan(text)
        self._at = 0
        self._rules: dict[str, tuple[int, Token]] = {}
        """By name, the rule and its first mention."""
        self._scopes: set[str] = set()
        self._unordered: set[str] = set()
        self._bodies: dict[str, tuple[int | list[Alternative], Token]] = {}
        self._given: dict[str, tuple[str, str, int, int | None, float | None]] = {}
        """Attributes of rules, by name."""
        self._inherits = False
        """Whether some rule passes its parameter on."""

    def grammar(self) -> int:
        while self._peek().kind != "end":
            name = self._name("the name of a rule")
            if name.value in self._bodies:
                raise self._error(f"rule {name.value} is defined twice", name)
            if self._is("{"):
                self._attributes(name)
            self._expect("::=")
            if self._take_word("scope"):
                self._scopes.add(name.value)
            unordered = self._take_word("unordered")
            if unordered:
                self._unordered.add(name.value)
                self._word("template")
            if unordered or self._take_word("template"):
                self._bodies[name.value] = self._template(), name
            else:
                self._bodies[name.value] = self._expression(), name
            follow = self._peek()
            if follow.kind != "end" and not self._at_rule():
                raise self._error(f"expected a rule or the end, found {follow.shown}", follow)
        if "start" not in self._bodies:
            known = {
                each: partial(self._error, token=token) for each, (_, token) in self._bodies.items()
            }
            raise missing_start("start", known, Source(self._text))
        body, name = self._bodies["start"]
        called = "start" in self._given or "start" in self._scopes
        if self._inherits or called or not isinstance(body, int):
            self._rule(name)
        self._define_all()
        if "start" in self._rules:
            return self._store.call(self._rules["start"][0])
        assert isinstance(body, int)
        return body

    def places(self) -> RulePlaces:
        """Where rules are defined, once the grammar is read."""
        source = Source(self._text)
        found = {
            name: Span(source, token.start, token.end) for name, (_, token) in self._bodies.items()
        }
        return {**found, "": found["start"]}

    def _define_all(self) -> None:
        for name, (rule, mention) in self._rules.items():
            if name not in self._bodies:
                raise self._error(f"rule {name} is not defined", mention)
            body, definition = self._bodies[name]
            if name in self._given:
                self._set_attributes(rule, name, definition)
            if name in self._scopes:
                self._store.scope(rule)
            if name in self._unordered:
                self._store.unordered(rule)
            if isinstance(body, int):
                self._store.define(rule, body)
                continue
            try:
                self._store.define_template(rule, body)
            except GrammarError as error:
                raise self._error(error.message, definition) from error

    def _attributes(self, name: Token) -> None:
        """Reads what a rule says of its texts, in braces after its name."""
        texts = {"capture": "", "stop_capture": ""}
        suffix, tokens, temperature = self._store.NOTHING, None, None
        self._expect("{")
        while True:
            word = self._next()
            token = self._peek()
            if word.value in texts and token.kind == "literal":
                texts[word.value] = self._next().value
            elif word.value == "suffix":
                suffix = self._expression()
            elif word.value == "max_tokens":
                tokens = self._number("a number of tokens")
            elif word.value == "temperature" and token.kind == "literal":
                try:
                    temperature = float(self._next().value)
                except ValueError:
                    raise self._error("this is no number", token) from None
            else:
                raise self._error(
                    "expected capture, stop_capture, suffix, max_tokens or temperature", word
                )
            if self._take("}"):
                break
            self._expect(",")
        given = texts["capture"], texts["stop_capture"], suffix, tokens, temperature
        self._given[name.value] = given

    def _set_attributes(self, rule: int, name: str, definition: Token) -> None:
        try:
            self._store.set_attributes(rule, *self._given[name])
        except GrammarError as error:
            raise self._error(error.message, definition) from None

    def _rule(self, name: Token) -> int:
        if name.value in RESERVED:
            raise self._error(f"{name.value} is a reserved word", name)
        if name.value not in self._rules:
            self._rules[name.value] = self._store.rule(name.value), name
        return self._rules[name.value][0]

    # Expressions

    def _expression(self) -> int:
        stack = [_Group()]
        while True:
            token = self._peek()
            group = stack[-1]
            value = token.value if token.kind == "symbol" else ""
            if value in ("|", "&"):
                self._at += 1
                self._close_sequence(group, token)
                if value == "&":
                    group.operators.append(token)
                else:
                    self._close_meet(group)
            elif value == "~":
                self._at += 1
                group.nots.append(token)
            elif value == "(" or (token.kind == "name" and token.value in _LIFTS):
                self._at += 1
                if not value:
                    self._expect("(")
                stack.append(_Group(None if value else token))
            elif value == ")" and len(stack) > 1:
                self._at += 1
                stack.pop()
                self._push(stack[-1], self._close(group, token))
            elif value == ")":
                raise self._error("this parenthesis closes nothing", token)
            elif token.kind in ("literal", "class") or (
                token.kind == "name" and not self._at_rule()
            ):
                self._push(group, self._atom())
            elif len(stack) > 1:
                raise self._error(f"expected an operand or ), found {token.shown}", token)
            else:
                return self._close(group, token)

    def _atom(self) -> int:
        token = self._next()
        if token.kind == "literal":
            return self._store.literal(token.value.encode())
        if token.kind == "class":
            return self._store.chars(token.ranges)
        if token.value == "nothing":
            return self._store.NOTHING
        if token.value == "multiples":
            return self._multiples(token)
        if token.value == "margin":
            return self._margin()
        if token.value in ("tokens", "other_tokens"):
            return self._token_set(negated=token.value == "other_tokens")
        rule = self._rule(token)
        follow = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if self._is("(") and follow.kind == "symbol" and follow.value in ("#", "$"):
            return self._store.call(rule, self._parameter())
        if self._is("(") and follow.kind == "symbol" and follow.value == "=":
            self._at += 2
            self._expect(")")
            self._inherits = True
            return self._store.call(rule, None)
        return self._store.call(rule)

    def _multiples(self, token: Token) -> int:
        self._expect("(")
        divisor = self._number("a divisor")
        self._expect(",")
        places = self._number("a number of decimal places")
        self._expect(")")
        try:
            return self._store.multiples(divisor, places)
        except GrammarError as error:
            raise self._error(error.message, token) from None

    def _margin(self) -> int:
        self._expect("(")
        counter = self._indexed("$")
        self._expect(",")
        tab = self._number("the width of a tab")
        some = self._take(",")
        if some:
            self._word("some")
        self._expect(")")
        self._inherits = True
        return self._store.margin(counter, tab, some)

    def _token_set(self, *, negated: bool) -> int:
        names: list[str] = []
        ids: list[tuple[int, int]] = []
        self._expect("(")
        while not self._take(")"):
            if names or ids:
                self._expect(",")
            token = self._peek()
            if token.kind == "literal":
                names.append(self._next().value)
                continue
            low = high = self._number("a token id, a name in quotes or )")
            if self._take(".."):
                high = self._number("the last id")
            if high < low:
                raise self._error("this range ends before its start", token)
            ids.append((low, high))
        return self._store.tokens(names, ids, negated)

    def _push(self, group: _Group, term: int) -> None:
        """Adds an item to a sequence, with the quantifiers that follow it."""
        while (token := self._peek()).kind == "symbol":
            if token.value in _QUANTIFIERS:
                self._at += 1
                term = self._store.repeat(term, *_QUANTIFIERS[token.value])
            elif token.value == "{":
                term = self._store.repeat(term, *self._counts())
            else:
                break
        group.parts.append((term, group.nots))
        group.nots = []

    def _counts(self) -> tuple[int, int | None]:
        opening = self._expect("{")
        low = self._number("a count")
        high: int | None = low
        if self._take(","):
            high = None if self._is("}") else self._number("a count or }")
        self._expect("}")
        if high is not None and high < low:
            raise self._error(f"the minimum {low} is above the maximum {high}", opening)
        return low, high

    def _close_sequence(self, group: _Group, token: Token) -> None:
        if group.nots or not group.parts:
            raise self._error(
                f'expected an operand, found {token.shown}; the empty text is ""', token
            )
        terms = []
        for term, nots in group.parts:
            for operator in reversed(nots):
                self._check_regular(term, operator)
                term = self._store.complement(term)
            terms.append(term)
        group.meets.append(self._store.concat(terms))
        group.parts = []

    def _close_meet(self, group: _Group) -> None:
        if group.operators:
            for term in group.meets:
                self._check_regular(term, group.operators[0])
        meets = group.meets
        group.branches.append(meets[0] if len(meets) == 1 else self._store.intersect(meets))
        group.meets = []
        group.operators = []

    def _close(self, group: _Group, token: Token) -> int:
        self._close_sequence(group, token)
        self._close_meet(group)
        term = self._store.union(group.branches)
        if group.lift is not None:
            self._check_regular(term, group.lift)
            if group.lift.value == "distinct":
                return self._distinct(term, group.lift)
            lift = self._store.json if group.lift.value == "json" else self._store.distinct_text
            return lift(term)
        return term

    def _distinct(self, term: int, token: Token) -> int:
        try:
            return self._store.distinct(term)
        except GrammarError as error:
            raise self._error(error.message, token) from None

    def _check_regular(self, term: int, operator: Token) -> None:
        if not self._store.is_regular(term):
            raise self._error(
                f"{operator.value} applies to expressions without rules and tokens; this operand "
                "has one",
                operator,
            )

    # Templates

    def _template(self) -> list[Alternative]:
        self._expect("{")
        alternatives: list[Alternative] = []
        while not self._take("}"):
            conditions: list[Condition] = []
            if self._take_word("if"):
                conditions.append(self._condition())
                while self._take(","):
                    conditions.append(self._condition())
                self._expect(":")
            head = self._expression()
            next_rule, tail = -1, self._store.EMPTY
            updates: list[Update] = []
            if self._take("->"):
                next_rule = self._rule(self._name("the name of a rule"))
                self._expect("(")
                while not self._take(")"):
                    if updates:
                        self._expect(",")
                    updates.append(self._update())
                if not self._is(";"):
                    tail = self._expression()
            self._expect(";")
            alternatives.append((head, next_rule, tail, conditions, updates))
        return alternatives

    def _condition(self) -> Condition:
        if self._take_word("unseen"):
            return ("unseen", self._indexed("#"))
        if self._take_word("seen"):
            bits = [self._indexed("#")]
            while self._is("#"):
                bits.append(self._indexed("#"))
            return ("all_seen", tuple(bits))
        counter = self._indexed("$", "expected unseen #…, seen #… or $… in …")
        if self._take("<"):
            other = self._indexed("$")
            sign = -1 if self._take("-") else 1
            if sign == 1:
                self._expect("+")
            return ("below", counter, other, sign * self._number("a number"))
        self._word("in")
        low = self._number("a number")
        self._expect("..")
        return ("between", counter, low, self._number("a number"))

    def _update(self) -> Update:
        if self._take_word("see"):
            return ("see", self._indexed("#"))
        counter = self._indexed("$", "expected see #…, $… = … or $… += … max …")
        if self._take("="):
            if not self._is("$"):
                return ("set", counter, self._number("a number"))
            other = self._indexed("$")
            self._expect("+")
            return ("copy", counter, other, self._number("a number"))
        self._expect("+=")
        amount = self._number("a number")
        self._word("max")
        return ("add", counter, amount, self._number("a number"))

    def _parameter(self) -> int:
        self._expect("(")
        bits: list[int] = []
        counters: dict[int, int] = {}
        while True:
            if self._is("#"):
                bits.append(self._indexed("#"))
            else:
                counter = self._indexed("$", "expected #… or $… = …")
                self._expect("=")
                counters[counter] = self._number("a number")
            if self._take(")"):
                break
            self._expect(",")
        values = [counters.get(index, 0) for index in range(max(counters, default=-1) + 1)]
        return self._store.param(bits, values)

    # Tokens

    def _error(self, message: str, token: Token) -> GrammarError:
        return GrammarError(message, source=self._text, position=token.start, end=token.end)

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _is(self, symbol: str) -> bool:
        token = self._peek()
        return token.kind == "symbol" and token.value == symbol

    def _take(self, symbol: str) -> bool:
        found = self._is(symbol)
        self._at += found
        return found

    def _take_word(self, word: str) -> bool:
        token = self._peek()
        found = token.kind == "name" and token.value == word
        self._at += found
        return found

    def _word(self, word: str) -> None:
        if not self._take_word(word):
            raise self._error(f"expected {word}, found {self._peek().shown}", self._peek())

    def _expect(self, symbol: str) -> Token:
        token = self._peek()
        if not self._take(symbol):
            raise self._error(f"expected {symbol}, found {token.shown}", token)
        return token

    def _name(self, what: str) -> Token:
        token = self._peek()
        if token.kind != "name":
            raise self._error(f"expected {what}, found {token.shown}", token)
        if token.value in RESERVED:
            raise self._error(f"{token.value} is a reserved word", token)
        return self._next()

    def _number(self, what: str) -> int:
        token = self._peek()
        if token.kind != "number":
            raise self._error(f"expected {what}, found {token.shown}", token)
        if len(token.value.lstrip("0")) > 10 or int(token.value) > MAX_COUNT:
            raise self._error(f"the number is too large; expected at most {MAX_COUNT}", token)
        self._at += 1
        return int(token.value)

    def _indexed(self, sigil: str, otherwise: str = "") -> int:
        if otherwise and not self._is(sigil):
            raise self._error(f"{otherwise}, found {self._peek().shown}", self._peek())
        self._expect(sigil)
        return self._number("a number")

    def _at_rule(self) -> bool:
        follow = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if self._peek().kind != "name" or follow.kind != "symbol":
            return False
        if follow.value == "{":
            last = self._tokens[min(self._at + 2, len(self._tokens) - 1)]
            return last.kind == "name"
        return follow.value == "::="
