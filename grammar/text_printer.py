"""Writing the text form of a grammar; text_form.py says what it is, docs/text-form.md how it looks.

A text is canonical: it depends on the structure of the terms alone, not on their numbers or on the
order in which a store keeps operands. (Rules of equal names are told apart by a suffix, in the
order in which they were made.) Each term is visited once, but one that stands in many places is
written out at each of them; `MAX_TEXT` characters are the bound on one expression.
"""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammaton.errors import GrammarError, LimitExceeded
from grammaton.grammar.regex.ranges import Ranges, invert, normalize

if TYPE_CHECKING:
    from grammaton._core import Alternative, Condition, TermStore, Update

MAX_TEXT = 20_000_000
RESERVED = frozenset(
    {
        *("distinct", "distinct_text", "if", "json", "margin", "multiples", "nothing"),
        *("other_tokens", "scope", "template", "tokens", "unordered"),
    }
)
SURROGATES = (0xD800, 0xDFFF)
LITERAL_SPECIAL = '"\\'
CLASS_SPECIAL = "\\[]^-"

_UNION, _INTERSECT, _CONCAT, _PREFIX, _POSTFIX, _ATOM = range(6)
_MENTION = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|([A-Za-z_]\w*)', re.ASCII)
_SHORT_ESCAPES = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_ASSOCIATIVE = {"union": _UNION, "intersect": _INTERSECT, "concat": _CONCAT}


def to_text(store: TermStore, start: int) -> str:
    """The text form of the grammar that starts at a term.

    Raises:
        LimitExceeded: an expression is longer than `MAX_TEXT` characters.
        GrammarError: a rule is not defined, or the term is a derivative.
    """
    return _Printer(store).grammar(start)


def escape(code_point: int, special: str) -> str:
    """A character as it stands in a literal or class; `special` are those that need a backslash."""
    char = chr(code_point)
    if code_point in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[code_point]
    if char in special:
        return "\\" + char
    return char if char.isprintable() else f"\\u{{{code_point:X}}}"


class _Printer:
    def __init__(self, store: TermStore) -> None:
        self._store = store
        self._texts: dict[int, tuple[str, int]] = {}
        self._names: dict[int, str] = {}

    def grammar(self, start: int) -> str:
        rules = self._reachable_rules(start)
        head = self._store.node(start)
        root = head[1] if head[0] == "call" and head[2] == 0 else None
        if not (isinstance(root, int) and self._store.rule_name(root) == "start"):
            root = None
        self._name_rules(sorted(rules), root)
        first = self._expression(start) if root is None else self._body(root)
        lines = [f"start{self._attributes(root)} ::= {first}"]
        by_name = {name: rule for rule, name in self._names.items()}
        queue = deque([first])
        done = {"start"}
        while queue:
            for mention in _MENTION.finditer(queue.popleft()):
                name = mention[1]
                if name in by_name and name not in done:
                    done.add(name)
                    body = self._body(by_name[name])
                    queue.append(body)
                    lines.append(f"{name}{self._attributes(by_name[name])} ::= {body}")
        return "\n".join(lines) + "\n"

    def _name_rules(self, rules: Sequence[int], root: int | None) -> None:
        taken = {"start", *RESERVED}
        counts: dict[str, int] = {}
        if root is not None:
            self._names[root] = "start"
        for rule in rules:
            if rule == root:
                continue
            wanted = re.sub(r"\W", "_", self._store.rule_name(rule), flags=re.ASCII) or "_"
            wanted = "_" + wanted if wanted[0].isdigit() else wanted
            name, count = wanted, counts.get(wanted, 1)
            while name in taken:
                count += 1
                name = f"{wanted}_{count}"
            counts[wanted] = count
            taken.add(name)
            self._names[rule] = name

    def _children(self, term: int) -> list[int]:
        match self._store.node(term):
            case ("concat" | "union" | "intersect", parts):
                assert isinstance(parts, tuple)
                return list(parts)
            case ("complement" | "json" | "repeat", int(inner), *_):
                return [inner]
            case ("distinct" | "distinct_text", int(inner)):
                return [inner]
        return []

    def _reachable_rules(self, start: int) -> set[int]:
        rules: set[int] = set()
        seen = {start}
        stack = [start]
        while stack:
            term = stack.pop()
            found = self._children(term)
            node = self._store.node(term)
            new_rules = {node[1]} if node[0] == "call" else set()
            while new_rules:
                rule = new_rules.pop()
                assert isinstance(rule, int)
                if rule in rules:
                    continue
                rules.add(rule)
                body = self._store.rule_body(rule)
                if body is None:
                    raise GrammarError(f"rule {self._store.rule_name(rule)} is not defined")
                if isinstance(body, int):
                    found.append(body)
                    continue
                for head, next_rule, tail, _, _ in body:
                    found += (head, tail)
                    if next_rule >= 0:
                        new_rules.add(next_rule)
            stack.extend(term for term in found if term not in seen)
            seen.update(found)
        return rules

    def _attributes(self, rule: int | None) -> str:
        if rule is None:
            return ""
        capture, stop_capture, suffix, tokens, temperature = self._store.attributes(rule)
        items = []
        if capture:
            items.append(f"capture {literal(capture)}")
        if stop_capture:
            items.append(f"stop_capture {literal(stop_capture)}")
        if suffix != self._store.NOTHING:
            items.append(f"suffix {self._expression(suffix)}")
        if tokens is not None:
            items.append(f"max_tokens {tokens}")
        if temperature is not None:
            items.append(f'temperature "{_single(temperature)}"')
        return f" {{{', '.join(items)}}}" if items else ""

    def _body(self, rule: int) -> str:
        body = self._store.rule_body(rule)
        scope = "scope " if self._store.is_scope(rule) else ""
        if isinstance(body, int):
            return scope + self._expression(body)
        assert body is not None
        order = "unordered " if self._store.is_unordered(rule) else ""
        return "\n".join([scope + order + "template {", *map(self._alternative, body), "}"])

    def _alternative(self, alternative: Alternative) -> str:
        head, next_rule, tail, conditions, updates = alternative
        text = self._expression(head)
        if next_rule >= 0:
            text += f" -> {self._names[next_rule]}({', '.join(map(_update, updates))})"
            if tail != self._store.EMPTY:
                text += " " + self._expression(tail)
        when = ", ".join(map(_condition, conditions))
        return f"  if {when}: {text};" if when else f"  {text};"

    def _expression(self, term: int) -> str:
        """The text of a term, those of its parts being made first, without recursion."""
        stack = [term]
        while stack:
            top = stack[-1]
            if top in self._texts:
                stack.pop()
                continue
            missing = [part for part in self._parts(top) if part not in self._texts]
            if missing:
                stack.extend(missing)
                continue
            text, level = self._render(top)
            if len(text) > MAX_TEXT:
                raise LimitExceeded(
                    f"the text form of the grammar is longer than {MAX_TEXT} characters"
                )
            self._texts[top] = text, level
            stack.pop()
        return self._texts[term][0]

    def _parts(self, term: int) -> list[int]:
        """The operands of a term; those of an associative one without its own kind inside."""
        kind = self._store.node(term)[0]
        if kind not in _ASSOCIATIVE:
            return self._children(term)
        parts: list[int] = []
        stack = [term]
        while stack:
            top = stack.pop()
            if self._store.node(top)[0] == kind:
                stack.extend(reversed(self._children(top)))
            else:
                parts.append(top)
        return parts

    def _operand(self, term: int, level: int) -> tuple[str, int]:
        """A term as it stands where `level` or tighter is wanted."""
        text, own = self._texts[term]
        return (text, own) if own >= level else (f"({text})", _ATOM)

    def _render(self, term: int) -> tuple[str, int]:
        match self._store.node(term):
            case ("nothing",):
                return "nothing", _ATOM
            case ("empty",):
                return '""', _ATOM
            case ("chars", ranges):
                return character_class(ranges), _ATOM
            case ("bytes", ranges) if _is_ascii(ranges):
                return character_class(ranges), _ATOM
            case ("call", int(rule), int(param)):
                return self._names[rule] + self._parameter(param), _ATOM
            case ("call", int(rule), None):
                return self._names[rule] + "(=)", _ATOM
            case ("margin", counter, tab, some):
                return f"margin(${counter}, {tab}{', some' if some else ''})", _ATOM
            case ("multiples", divisor, places):
                return f"multiples({divisor}, {places})", _ATOM
            case ("tokens", tuple(names), tuple(ids), bool(negated)):
                return token_set(names, ids, negated=negated), _ATOM
            case ("json" | "distinct" | "distinct_text" as name, int(inner)):
                return f"{name}({self._texts[inner][0]})", _ATOM
            case ("complement", int(inner)):
                return "~" + self._operand(inner, _PREFIX)[0], _PREFIX
            case ("repeat", int(inner), int(low), high):
                assert high is None or isinstance(high, int)
                return self._operand(inner, _ATOM)[0] + _quantifier(low, high), _POSTFIX
            case ("union", *_):
                operands = dict(self._operand(part, _INTERSECT) for part in self._parts(term))
                return _joined(" | ", operands, _UNION)
            case ("intersect", *_):
                return self._intersection(self._parts(term))
            case ("concat", *_):
                return self._concatenation(self._parts(term))
        raise GrammarError("a derivative has no text form")

    def _intersection(self, parts: Sequence[int]) -> tuple[str, int]:
        operands = dict(self._operand(part, _CONCAT) for part in parts)
        if any(self._store.node(part)[0] == "complement" for part in parts):
            # A store may spell `~x` as "any text, and not x"; `~` in a text says both.
            operands.pop("[^]*", None)
        return _joined(" & ", operands, _INTERSECT)

    def _concatenation(self, parts: Sequence[int]) -> tuple[str, int]:
        operands: list[tuple[str, int]] = []
        inside: list[str] = []  # of literals in a row, which are one
        for part in [*parts, None]:
            if part == self._store.EMPTY:
                continue
            text, level = (" ", 0) if part is None else self._operand(part, _PREFIX)
            if text[0] == '"' == text[-1]:
                inside.append(text[1:-1])
                continue
            if inside:
                operands.append(('"' + "".join(inside) + '"', _ATOM))
                inside = []
            if part is not None:
                operands.append((text, level))
        if len(operands) == 1:
            return operands[0]
        return " ".join(text for text, _ in operands) or '""', _CONCAT if operands else _ATOM

    def _parameter(self, param: int) -> str:
        bits, counters = self._store.param_value(param)
        items = [f"#{bit}" for bit in bits]
        items += [f"${index} = {value}" for index, value in enumerate(counters)]
        return f"({', '.join(items)})" if items else ""


def _joined(separator: str, operands: dict[str, int], level: int) -> tuple[str, int]:
    if len(operands) == 1:
        return next(iter(operands.items()))
    return separator.join(sorted(operands)), level


def _single(value: float) -> str:
    """A number of 32 bits in as few digits as tell it from others."""
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return text
    return f"{value:.9g}"


def literal(text: str) -> str:
    """A text as it stands between quotes."""
    return '"' + "".join(escape(ord(char), LITERAL_SPECIAL) for char in text) + '"'


def token_set(names: Sequence[str], ids: Sequence[tuple[int, int]], *, negated: bool) -> str:
    """One token of a set, given as names and inclusive ranges of ids, as it stands in a text."""
    items = [literal(name) for name in names]
    items += [f"{low}..{high}" if high > low else f"{low}" for low, high in ids]
    return f"{'other_tokens' if negated else 'tokens'}({', '.join(items)})"


def _is_ascii(ranges: object) -> bool:
    assert isinstance(ranges, tuple | list)
    return all(high < 0x80 for _, high in ranges)


def character_class(found: object) -> str:
    """A set of characters, given as inclusive ranges of code points, as it stands in a text."""
    assert isinstance(found, tuple | list)
    outside = invert(normalize((*found, SURROGATES)))
    ranges = invert(normalize((*outside, SURROGATES)))
    if len(outside) < len(ranges):
        return "[^" + _class_items(outside) + "]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f'"{escape(ranges[0][0], LITERAL_SPECIAL)}"'
    return "[" + _class_items(ranges) + "]"


def _class_items(ranges: Ranges) -> str:
    items = []
    for low, high in ranges:
        first, last = escape(low, CLASS_SPECIAL), escape(high, CLASS_SPECIAL)
        separator = "-" if high > low + 1 else ""
        items.append(first if low == high else first + separator + last)
    return "".join(items)


def _quantifier(low: int, high: int | None) -> str:
    simple = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    if simple is not None:
        return simple
    if low == high:
        return f"{{{low}}}"
    return f"{{{low},}}" if high is None else f"{{{low},{high}}}"


def _condition(condition: Condition) -> str:
    if condition[0] == "unseen":
        return f"unseen #{condition[1]}"
    if condition[0] == "between":
        return f"${condition[1]} in {condition[2]}..{condition[3]}"
    if condition[0] == "below":
        _, counter, other, offset = condition
        return f"${counter} < ${other} {'-' if offset < 0 else '+'} {abs(offset)}"
    return " ".join(["seen", *(f"#{bit}" for bit in condition[1])])


def _update(update: Update) -> str:
    if update[0] == "see":
        return f"see #{update[1]}"
    if update[0] == "set":
        return f"${update[1]} = {update[2]}"
    if update[0] == "copy":
        return f"${update[1]} = ${update[2]} + {update[3]}"
    return f"${update[1]} += {update[2]} max {update[3]}"
