r"""Which texts a regular expression matches whole, preferences and look-around included.

Lark matches a terminal with `re.match`, which has preferences: `/a|ab/` never matches "ab", and a
lazy `".*?"` ends at the first quote. The texts of a terminal are therefore those that `re.match`
matches whole when given just them: that is what Lark's Earley parser with `dynamic_complete` tries,
and for greedy expressions it is all texts.

The expression becomes an ordered automaton (Thompson's): a *thread* is a place in it, and the list
of threads after a text is in the order of preference. A match without conditions cuts the threads
behind it, which is all that preference does. Sets of characters become sets of *parts*, the classes
that the expression tells apart. Look-behind is tested with the characters just read; what it asks
of the character before the terminal is an *assumption*, and the automaton is made once for each
outcome. Look-ahead is an obligation that a thread carries along, and a match with open obligations
is one on condition: it cuts the others when they are met.

Lists of threads, hash-consed, are the states of a deterministic automaton (`Table`), at most
`MAX_STATES` of them. Beside the list runs the set of all threads, uncut; if both always agree on
what matches, preference does not matter here, and the caller may take the plain language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from grammaton.grammar.lark.needs import After, Before, Sets
from grammaton.grammar.regex.nodes import (
    Alt,
    Anchor,
    Atomic,
    Cat,
    Chars,
    Empty,
    Look,
    Node,
    Repeat,
    length,
)
from grammaton.grammar.regex.ranges import Ranges, contains, intersect, partition, unite

MAX_PLACES = 20_000
"""Places of an ordered automaton, counted repetitions being unrolled."""

MAX_STATES = 3_000
"""States of the deterministic automaton of one terminal."""

MAX_SEQUENCES = 64
"""Texts that one look-around may look for."""

MAX_ROUNDS = 16
"""Rounds of a repetition inside a look-around."""


MAX_STEPS = 3_000_000
"""Threads followed over a part for all terminals of a grammar: some seconds."""


class TooIntricate(Exception):
    """The expression can't be followed; the message says why."""


Mask = int
Obligation = tuple[bool, tuple[Mask, ...]]
"""Negative or not, and what the text ahead begins with."""
Thread = tuple[int, frozenset[Obligation]]

_MATCH = -1
_PASSED = -2
"""A match at an earlier place, whose obligations are open: it cuts the rest when they are met."""


@dataclass
class Table:
    """A deterministic automaton over parts.

    Attributes:
        before: what is assumed of the character before the text.
        moves: for each state, the next one by part; missing where nothing goes on. 0 is the start.
        matches: for each state, what must follow for its texts to be matched, one set of needs for
            each way; empty where nothing is matched.
        preferring: whether preference changes what is matched.
    """

    before: frozenset[Before]
    moves: list[dict[int, int]] = field(default_factory=list)
    matches: list[frozenset[frozenset[After]]] = field(default_factory=list)
    preferring: bool = False


class Steps:
    """Counts the threads that are followed for a grammar."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self, count: int) -> None:
        """Counts some more.

        Raises:
            TooIntricate: they are over `MAX_STEPS`.
        """
        self._taken += count
        if self._taken > MAX_STEPS:
            raise TooIntricate(f"with those before it, it takes over {MAX_STEPS} steps")


def tables(node: Node, steps: Steps) -> tuple[list[Table], list[Ranges]]:
    """The automata of an expression, one for each relevant assumption, and the parts.

    Raises:
        TooIntricate: a construct or a size that can't be followed.
    """
    automaton = _Automaton(node)
    found: list[Table] = []
    queue: list[dict[Mask, bool]] = [{}]
    while queue:
        assumed = queue.pop()
        try:
            found.append(_Runner(automaton, assumed, steps).table())
        except _Undecided as question:
            queue += [{**assumed, question.mask: outcome} for outcome in (False, True)]
        if len(found) + len(queue) > 16:
            raise TooIntricate("look-behind asks too much of the character before the terminal")
    return found, automaton.parts


def always_preferred(node: Node) -> bool:
    """Whether it is plain that every text of a node is matched whole: greedy, and each character
    settles where it is read, or longer matches are tried first. Counts are not unrolled for it."""
    return not node.asserts and (_settled(node, ()) or _longest_first(node))


def _settled(node: Node, follow: Ranges) -> bool:
    """`always_preferred` before characters of `follow`."""
    match node:
        case Cat(parts):
            for part in reversed(parts):
                if not _settled(part, follow):
                    return False
                first, nullable = _first(part)
                follow = unite(first, follow) if nullable else first
            return True
        case Alt(branches):
            if not follow and _shrinking(branches):
                return all(_settled(branch, ()) for branch in branches)
            seen: Ranges = ()
            for number, branch in enumerate(branches):
                first, nullable = _first(branch)
                last = number == len(branches) - 1
                if intersect(seen, first) or (nullable and not last):
                    return False
                seen = unite(seen, first)
                if not _settled(branch, follow):
                    return False
            return not (_first(branches[-1])[1] and intersect(seen, follow))
        case Repeat(body, low, high):
            first, nullable = _first(body)
            if nullable or (low != high and (node.lazy or intersect(first, follow))):
                return False
            return _settled(body, unite(first, follow) if high != 1 else follow)
    return True


def _longest_first(node: Node) -> bool:
    """Whether matches are tried by their lengths, longest first, as where a greedy run of
    characters is all whose length is not fixed: the whole text is the longest that can match."""
    open_parts = [
        part for part in (node.parts if isinstance(node, Cat) else (node,)) if _is_open(part)
    ]
    if len(open_parts) != 1 or not isinstance(open_parts[0], Repeat):
        return not open_parts
    run = open_parts[0]
    return not run.lazy and not _is_open(run.body)


def _is_open(node: Node) -> bool:
    fewest, most = length(node)
    return fewest != most


def _shrinking(branches: Sequence[Node]) -> bool:
    """Whether no branch is longer than an earlier one may be: then the first that matches at the
    end of a text takes all of it."""
    lengths = [length(branch) for branch in branches]
    return all(
        later is not None and fewest >= later for (fewest, _), (_, later) in pairwise(lengths)
    )


def _first(node: Node) -> tuple[Ranges, bool]:
    """The characters that texts of a node begin with, and whether one is empty."""
    match node:
        case Chars(ranges):
            return ranges, False
        case Cat(parts):
            found: Ranges = ()
            for part in parts:
                first, nullable = _first(part)
                found = unite(found, first)
                if not nullable:
                    return found, False
            return found, True
        case Alt(branches):
            firsts = [_first(branch) for branch in branches]
            return unite(*(first for first, _ in firsts)), any(empty for _, empty in firsts)
        case Repeat(body, low, high):
            first, nullable = _first(body)
            return (first if high != 0 else ()), nullable or low == 0
    return (), True


class _Undecided(Exception):
    def __init__(self, mask: Mask) -> None:
        self.mask = mask


@dataclass(frozen=True)
class _Place:
    """A place of an ordered automaton.

    `char`: one of `mask`, then `to[0]`. `split`: `to` in their order, `entering` being the body of
    a round. `again`: the end of a round that began at the place `mask`: then `to[0]`, or `to[1]`
    when the round took nothing. `look`: a look-around, then `to[0]`.
    """

    kind: str
    mask: Mask = 0
    to: tuple[int, ...] = ()
    entering: int | None = None
    behind: bool = False
    negative: bool = False
    texts: tuple[tuple[Mask, ...], ...] = ()


class _Automaton:
    """The ordered automaton of an expression; `_MATCH` is its end."""

    def __init__(self, node: Node) -> None:
        self.parts = partition(_sets(node))
        self._masks: dict[Ranges, Mask] = {}
        self.places: list[_Place] = []
        self.reach = 0
        """Characters that some look-behind looks at."""
        self.start = self._build(node, _MATCH)

    def ranges(self, mask: Mask) -> Ranges:
        """The characters of a mask."""
        return unite(*(part for index, part in enumerate(self.parts) if mask >> index & 1))

    def _mask(self, ranges: Ranges) -> Mask:
        if ranges not in self._masks:
            self._masks[ranges] = sum(
                1 << index for index, part in enumerate(self.parts) if contains(ranges, part[0][0])
            )
        return self._masks[ranges]

    def _add(self, place: _Place) -> int:
        if len(self.places) == MAX_PLACES:
            raise TooIntricate(f"it is longer than {MAX_PLACES} characters when written out")
        self.places.append(place)
        return len(self.places) - 1

    def _build(self, node: Node, follow: int) -> int:
        match node:
            case Empty():
                return follow
            case Chars(ranges):
                return self._add(_Place("char", self._mask(ranges), (follow,)))
            case Cat(parts):
                for part in reversed(parts):
                    follow = self._build(part, follow)
                return follow
            case Alt(branches):
                starts = tuple(self._build(branch, follow) for branch in branches)
                return self._add(_Place("split", to=starts))
            case Repeat():
                return self._build_repeat(node, follow)
            case Look():
                return self._build_look(node, follow)
            case Anchor():
                raise TooIntricate("anchors are not supported in terminals")
            case Atomic():
                raise TooIntricate(
                    "atomic groups and possessive quantifiers are not supported in terminals"
                )

    def _build_repeat(self, node: Repeat, follow: int) -> int:
        if node.max is None:
            start = self._round(node, follow, None)
        else:
            start = follow
            for _ in range(node.max - node.min):
                start = self._round(node, follow, start)
        for _ in range(node.min):
            start = self._build(node.body, start)
        return start

    def _round(self, node: Repeat, follow: int, more: int | None) -> int:
        """A round that need not be, then those from `more` on; None is itself again."""
        start = self._add(_Place("split"))
        after = self._add(_Place("again", start, (start if more is None else more, follow)))
        body = self._build(node.body, after)
        ways = (follow, body) if node.lazy else (body, follow)
        self.places[start] = _Place("split", to=ways, entering=body)
        return start

    def _build_look(self, look: Look, follow: int) -> int:
        found = _sequences(look.body, open_end=not look.behind)
        if found is None:
            kind = "look-behind" if look.behind else "look-ahead"
            raise TooIntricate(f"this {kind} is not supported in a terminal")
        texts = tuple(tuple(map(self._mask, text)) for text in found)
        if look.behind:
            self.reach = max(self.reach, *map(len, texts))
        return self._add(
            _Place("look", to=(follow,), behind=look.behind, negative=look.negative, texts=texts)
        )


State = tuple[tuple[int, ...], tuple[Thread, ...], frozenset[Thread]]
"""The last parts, as far as look-behind needs them; the threads; all of them uncut."""


class _Runner:
    """Makes the table of an automaton under assumptions on the character before."""

    def __init__(self, automaton: _Automaton, assumed: dict[Mask, bool], steps: Steps) -> None:
        self._steps = steps
        self._automaton = automaton
        self._assumed = assumed
        self._needs: dict[frozenset[Obligation], frozenset[After]] = {}

    def table(self) -> Table:
        automaton = self._automaton
        table = Table(
            frozenset(
                Before(not outcome, automaton.ranges(mask))
                for mask, outcome in self._assumed.items()
            )
        )
        start: Thread = (automaton.start, frozenset())
        first = self._state((), [start], [start])
        numbers = {first: 0}
        queue = [first]
        for state in queue:  # which grows meanwhile
            table.moves.append({})
            matches, cut = self._matches(state[1]), self._matches(tuple(state[2]))
            table.matches.append(matches)
            table.preferring = table.preferring or bool(matches) != bool(cut)
            for part in range(len(automaton.parts)):
                follow = self._step(state, part)
                if not follow[1]:
                    # Uncut threads may go on here, and match what preference does not.
                    table.preferring = table.preferring or bool(follow[2])
                    continue
                if follow not in numbers:
                    numbers[follow] = len(numbers)
                    queue.append(follow)
                    if len(queue) > MAX_STATES:
                        raise TooIntricate(f"it has more than {MAX_STATES} states")
                table.moves[-1][part] = numbers[follow]
        return table

    def _matches(self, threads: Sequence[Thread]) -> frozenset[frozenset[After]]:
        found: set[frozenset[After]] = set()
        passed = False
        for place, obligations in threads:
            passed = passed or place == _PASSED
            if place != _MATCH:
                continue
            if passed:
                raise TooIntricate("which of its matches is preferred depends on what follows")
            if obligations not in self._needs:
                self._needs[obligations] = frozenset(
                    After(negative, tuple(map(self._automaton.ranges, text)))
                    for negative, text in obligations
                )
            found.add(self._needs[obligations])
        return frozenset(found)

    def _step(self, state: State, part: int) -> State:
        history, threads, uncut = state
        self._steps.take(len(threads) + len(uncut))
        bit = 1 << part
        going: list[Thread] = []
        for place, obligations in threads:
            left = _advance(obligations, bit)
            if left is None:
                continue
            if place < 0:
                if not left:
                    break  # the earlier match was preferred after all
                going.append((_PASSED, left))
                continue
            here = self._automaton.places[place]
            if here.mask & bit:
                going.append((here.to[0], left))
        free: list[Thread] = []
        for place, obligations in uncut:
            left = _advance(obligations, bit)
            if place >= 0 and left is not None and self._automaton.places[place].mask & bit:
                free.append((self._automaton.places[place].to[0], left))
        return self._state((*history, part), going, free)

    def _state(self, history: tuple[int, ...], threads: list[Thread], free: list[Thread]) -> State:
        reach = self._automaton.reach
        known = history[-reach:] if reach else ()
        ordered = tuple(self._closed(threads, known, cut=True))
        uncut = frozenset(self._closed(free, known, cut=False))
        # While the start is in sight, look-behind may still ask what was before it.
        kept = known if len(history) < reach else known[1:]
        return kept, ordered, uncut

    def _closed(
        self, threads: list[Thread], known: tuple[int, ...], *, cut: bool
    ) -> Iterator[Thread]:
        """Follows splits and look-around up to characters and matches, in order.

        As Python does it, a round of a repetition that takes nothing is the last one: each thread
        knows the rounds that it entered here.
        """
        seen: set[tuple[int, frozenset[Obligation], frozenset[int]]] = set()
        found: set[Thread] = set()
        none: frozenset[int] = frozenset()
        stack = [(place, obligations, none) for place, obligations in reversed(threads)]
        while stack:
            place, obligations, entered = stack.pop()
            here = self._automaton.places[place] if place >= 0 else None
            if here is None or here.kind == "char":
                thread = (place, obligations)
                if thread in found or (place, frozenset()) in found:
                    continue
                found.add(thread)
                yield thread
                if cut and place == _MATCH and not obligations:
                    return
                continue
            if (place, obligations, entered) in seen:
                continue
            seen.add((place, obligations, entered))
            if here.kind == "split":
                for to in reversed(here.to):
                    inside = entered | {place} if to == here.entering else entered
                    stack.append((to, obligations, inside))
            elif here.kind == "again":
                stack.append((here.to[here.mask in entered], obligations, entered))
            else:
                ways = self._look(here, obligations, known)
                stack.extend((here.to[0], more, entered) for more in reversed(ways))

    def _look(
        self, look: _Place, obligations: frozenset[Obligation], known: tuple[int, ...]
    ) -> list[frozenset[Obligation]]:
        """The obligations to go on with, one set for each way."""
        if look.behind:
            met = any(self._precedes(text, known) for text in look.texts)
            return [obligations] if met != look.negative else []
        if () in look.texts:
            return [] if look.negative else [obligations]
        if look.negative:
            return [obligations | {(True, text) for text in look.texts}]
        return [obligations | {(False, text)} for text in look.texts]

    def _precedes(self, text: tuple[Mask, ...], known: tuple[int, ...]) -> bool:
        inside = text[max(0, len(text) - len(known)) :]
        if not all(
            mask >> part & 1
            for mask, part in zip(inside, known[len(known) - len(inside) :], strict=True)
        ):
            return False
        outside = text[: len(text) - len(inside)]
        if not outside:
            return True
        if len(outside) > 1:
            raise TooIntricate(
                "look-behind over more than one character before the terminal is not supported"
            )
        if outside[0] not in self._assumed:
            raise _Undecided(outside[0])
        return self._assumed[outside[0]]


def _advance(obligations: frozenset[Obligation], bit: Mask) -> frozenset[Obligation] | None:
    """What is left of obligations after a character; None when one is broken."""
    if not obligations:
        return obligations
    left: set[Obligation] = set()
    for negative, text in obligations:
        if text[0] & bit:
            if len(text) > 1:
                left.add((negative, text[1:]))
            elif negative:
                return None
        elif not negative:
            return None
    return frozenset(left)


def _sets(node: Node) -> Iterator[Ranges]:
    stack = [node]
    while stack:
        top = stack.pop()
        match top:
            case Chars(ranges):
                yield ranges
            case Cat(parts):
                stack.extend(parts)
            case Alt(branches):
                stack.extend(branches)
            case Repeat(body) | Look(_, _, body) | Atomic(body):
                stack.append(body)


def _sequences(node: Node, *, open_end: bool) -> list[Sets] | None:
    """The texts of a node as sequences of sets; None when they are too many or not known.

    With `open_end` a text stands for all that begin with it, so the end of a repetition at the end
    does not matter.
    """
    match node:
        case Empty():
            return [()]
        case Chars(ranges):
            return [(ranges,)] if ranges else []
        case Alt(branches):
            return _together([_sequences(branch, open_end=open_end) for branch in branches])
        case Cat(parts):
            return _joined(parts, open_end=open_end)
        case Repeat(body, low, high):
            if open_end:
                return _joined([body] * low, open_end=True) if low <= MAX_ROUNDS else None
            if high is None or high > MAX_ROUNDS:
                return None
            return _together(
                [_joined([body] * count, open_end=False) for count in range(low, high + 1)]
            )
    return None


def _together(several: list[list[Sets] | None]) -> list[Sets] | None:
    found: list[Sets] = []
    for texts in several:
        if texts is None or len(found) + len(texts) > MAX_SEQUENCES:
            return None
        found.extend(texts)
    return found


def _joined(parts: Sequence[Node], *, open_end: bool) -> list[Sets] | None:
    found: list[Sets] = [()]
    for index, part in enumerate(parts):
        texts = _sequences(part, open_end=open_end and index == len(parts) - 1)
        if texts is None or len(found) * len(texts) > MAX_SEQUENCES:
            return None
        found = [first + second for first, second in product(found, texts)]
    return found
