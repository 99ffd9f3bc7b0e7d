"""Types of the compiled core (C++20, nanobind): terms, the machine, masks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grammaton.limits import Limits

# One alternative of a template rule: `head · call(next_rule, param') · tail`, present in the
# body for parameter `param` when every condition holds.
#   conditions: ("unseen", bit) | ("all_seen", (bit, ...)) | ("between", counter, low, high)
#               low <= counters[counter] <= high, both inclusive
#               | ("below", counter, other, offset): counters[counter] < counters[other] + offset
#   updates:    ("see", bit) | ("set", counter, value) | ("add", counter, amount, cap)
#               "add" saturates: min(value + amount, cap)
#               | ("copy", counter, other, amount): counters[counter] = counters[other] + amount
# next_rule is -1 for none; then `updates` is empty and tail should be EMPTY.
Condition = (
    tuple[Literal["unseen"], int]
    | tuple[Literal["all_seen"], tuple[int, ...]]
    | tuple[Literal["between"], int, int, int]
    | tuple[Literal["below"], int, int, int]
)
Update = (
    tuple[Literal["see"], int]
    | tuple[Literal["set"], int, int]
    | tuple[Literal["add"], int, int, int]
    | tuple[Literal["copy"], int, int, int]
)
Alternative = tuple[int, int, int, Sequence[Condition], Sequence[Update]]
"""(head, next_rule, tail, conditions, updates)"""

TokenSet = tuple[int, tuple[str, ...], tuple[tuple[int, int], ...], bool]
"""(number, names, ids as inclusive ranges, negated)"""

class TermStore:
    """Hash-consed terms of the expression language; a term is an int id of this store."""

    NOTHING: int
    EMPTY: int
    def __init__(self, limits: Limits = ...) -> None: ...
    def chars(self, ranges: Sequence[tuple[int, int]]) -> int:
        """One character out of inclusive code point ranges, as UTF-8; surrogates are dropped."""
    def plain_pattern(self, pattern: str) -> int | None:
        """The texts in which a pattern of ECMA-262, leniently read, is found, if it is made of
        characters, classes, groups, counts, and anchors at the ends of a branch alone; None for
        others, and for what is no pattern. No lone surrogates."""
    def literal(self, text: bytes) -> int:
        """Exactly this text; must be valid UTF-8 (GrammarError)."""
    def literals(self, texts: Sequence[bytes]) -> int:
        """Any of these texts, built as a trie: use it for large sets."""
    def concat(self, terms: Sequence[int]) -> int: ...
    def members(
        self, keys: Sequence[int], values: Sequence[int], before: int, between: int, after: int
    ) -> list[int]:
        """For each key and its value: `before`, the key, `between`, the value, `after`."""
    def union(self, terms: Sequence[int]) -> int: ...
    def intersect(self, terms: Sequence[int]) -> int:
        """Regular terms only (GrammarError when a call is inside)."""
    def complement(self, term: int) -> int:
        """Every valid UTF-8 text outside a regular term."""
    def repeat(self, term: int, min: int, max: int | None) -> int: ...
    def json(self, term: int) -> int:
        """The lift through JSON's string escapes (RFC 8259, section 7): every spelling, without the
        quotes, of every text of a regular term. No raw control characters, no lone surrogates."""
    def multiples(self, divisor: int, places: int = 0) -> int:
        """Digits, at most one point among them, of the values that times 10**places are multiples
        of `divisor` (1 to 2**32 - 1; places up to 1,000). Leading zeros, and a point without digits
        on a side, are in; intersect with a shape. A remainder is one term, made when reached."""
    def tokens(
        self,
        names: Sequence[str] = ...,
        ids: Sequence[tuple[int, int]] = ...,
        negated: bool = False,
    ) -> int:
        """One token out of some, taken whole, whatever it spells: named ones and inclusive ranges
        of ids; `negated`: any other token that does not end a sequence."""
    def token_sets(self, term: int) -> list[TokenSet]:
        """What `tokens` was given for the parts of a term and of the rules it reaches."""
    def distinct(self, term: int) -> int:
        """A JSON scalar, in a text of a regular term, that no other `distinct` of the scope said.
        Values are compared: 1.0 is 1. A scope is a call of a rule marked by `scope`. GrammarError
        for the empty text, and, when the grammar is used, where something follows a rule with such
        a value within the scope. The caller sees to it that no scope needs more values than there
        are."""
    def distinct_text(self, term: int) -> int:
        """The same for a string: its characters in any JSON spelling, decoded a text of `term`, and
        the closing quote. Strings and other values of a scope are compared with each other."""
    def scope(self, rule: int) -> None:
        """Makes each call of the rule a scope of its own."""
    def is_scope(self, rule: int) -> bool: ...
    def unordered(self, rule: int) -> None:
        """Says of a template that whichever of its alternatives can be taken later can as well be
        taken at once, what would have been taken before it after it, and the end is no farther.
        Whether anything leads to an end is then found sooner."""
    def is_unordered(self, rule: int) -> bool: ...
    def rule(self, name: str) -> int:
        """A new rule, to be defined later; recursion goes through rules. Names are for printing."""
    def set_attributes(
        self,
        rule: int,
        capture: str = "",
        stop_capture: str = "",
        suffix: int = 0,
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> None:
        """What else a rule says of its texts: the name under which they are captured, without what
        the regular term `suffix` matches at their end, and a name for that; the most tokens that
        may hold a part of one, and the temperature at which to sample them (both for bodies that
        are regular terms)."""
    def attributes(self, rule: int) -> tuple[str, str, int, int | None, float | None]:
        """The arguments of `set_attributes`."""
    def define(self, rule: int, body: int) -> None: ...
    def define_template(self, rule: int, alternatives: Sequence[Alternative]) -> None:
        """A rule whose body depends on its parameter. No head may be nullable, nor lead back to the
        rule at its own beginning. The caller sees to it that every reachable (rule, parameter) can
        end, unless an alternative's head is NOTHING: then alternatives that lead to no end are left
        out when they are reached."""
    def param(self, bits: Sequence[int] = ..., counters: Sequence[int] = ...) -> int:
        """A parameter value: a set of bits and a list of counters. Id 0 is no bits, no counters."""
    def call(self, rule: int, param: int | None = 0) -> int:
        """None stands for the parameter of the plain rule in whose body the call is. What such a
        rule calls must be able to end for every parameter, or for none."""
    def margin(self, counter: int, tab: int, some: bool = False) -> int:
        """Spaces and tabs that together are as wide as the counter of the rule's parameter says, a
        tab counting as `tab` columns; not the empty text, where `some`."""
    def import_term(self, other: TermStore, term: int) -> int:
        """Copies a term of another store, and the rules it reaches, into this one."""
    def is_nullable(self, term: int) -> bool: ...
    def is_empty(self, term: int) -> bool:
        """Whether the language is empty: decided for &, ~, json and calls alike."""
    def count_texts(self, term: int, most: int) -> int:
        """How many texts a regular term has, at most `most` (up to 2**32 - 1), which infinitely
        many count as."""
    def is_regular(self, term: int) -> bool:
        """Whether no call is inside."""
    def matches(self, term: int, text: bytes) -> bool:
        """Whether a text is one of a regular term's."""
    def derivative(self, term: int, byte: int) -> int:
        """The residual after one byte (regular terms); NOTHING when no text goes on."""
    def node(self, term: int) -> tuple[object, ...]:
        """One level of structure, for printing: ("nothing",) | ("empty",) | ("chars", ranges) |
        ("bytes", ranges) | ("concat", (t, ...)) | ("union", (t, ...)) | ("intersect", (t, ...)) |
        ("complement", t) | ("repeat", t, min, max) | ("call", rule, param) | ("json", t) |
        ("multiples", divisor, places) | ("tokens", names, ids, negated) |
        ("metered", t, tokens, temperature) |
        ("margin", counter, tab, some) | ("call", rule, None) where the parameter is passed on |
        ("distinct", t) | ("distinct_text", t) |
        ("residual",) for what only derivatives make."""
    def rule_name(self, rule: int) -> str: ...
    def rule_body(self, rule: int) -> int | list[Alternative] | None: ...
    def param_value(self, param: int) -> tuple[tuple[int, ...], tuple[int, ...]]: ...
    def save(self, term: int) -> bytes:
        """A term and the rules it reaches, for `load`. 20 ns a term."""
    @staticmethod
    def load(data: bytes, limits: Limits = ...) -> tuple[TermStore, int]:
        """A new store, and the term that `save` was given. Safe on any bytes: GrammarError for what
        `save` never writes, LimitExceeded for more than the limits allow. 100 ns a term."""
    def keep(self) -> None:
        """Normalises all that is here, so that constraints of copies need not do it again. Every
        rule must have a body and a text that is not empty, and none may be a template
        (GrammarError)."""
    def copy(self, limits: Limits = ...) -> TermStore:
        """A store that begins with the terms and rules of this one, under the same ids."""
    def __len__(self) -> int: ...

class SimpleSchemas:
    """The schemas of a document that need no algebra, read and lowered (json_schema/simple.py).

    A *schema* is given by its number here. `meet(raw, pointer)` gives the position of a raw schema
    that is not simple, `lower(position)` its term, `string(least, most, format, pattern, pointer)`
    the term of strings, `number(kinds, minimum, maximum, exclusive minimum and maximum, step)` that
    of numbers, `values(texts)` that of listed strings.
    """

    def __init__(
        self,
        store: TermStore,
        root: dict[str, Any],
        *,
        keywords: dict[str, int],
        types: dict[str, int],
        formats: dict[str, str | None],
        identity: str,
        lone_references: bool,
        pieces: tuple[int, ...],
        key_sorts: Callable[[list[str], list[str], bool], list[tuple[int, int]] | None],
        ready: dict[int, int],
        any_order: bool,
        closed: bool,
        most: int,
    ) -> None:
        """None of the document's schemas is read yet.

        Args:
            store: where terms are made.
            root: the document.
            keywords: those that assert something, by their number in `keywords()`, others 0.
            types: the kinds of values by the name of their type.
            formats: the formats that assert something; None for one without a term.
            identity: the keyword that gives a schema a URI.
            lone_references: what stands beside a `$ref` says nothing.
            pieces: the terms of a quote, a colon, both, a comma, space, the opening and closing
                brace and bracket, and the rest of any string after its quote.
            key_sorts: from patterns and the declared keys of an object, and whether there may be
                other properties than those with a pattern, the sorts of keys that are not declared,
                as the number of the pattern found in them, -1 for none, and the frame of a key;
                None where more than one schema may hold of a property.
            ready: the terms of all values of some kinds.
            any_order: members stand in any order.
            closed: objects that declare properties and do not speak of others have no others.
            most: how many schemas there may be (LimitExceeded).
        """

    @staticmethod
    def keywords() -> dict[str, int]:
        """The keywords that are read here."""

    def read(self, raw: object, node: object) -> int | None:
        """The number of a raw schema; None when it is not simple, or only says which kinds there
        are. `node.pointer` says where it stands."""

    def reach(
        self,
        schema: int,
        *,
        meet: Callable[[dict[str, Any], str], Any],
        string: Callable[[int, int | None, str | None, str | None, str], int],
        number: Callable[
            [int, float | None, float | None, float | None, float | None, float | None], int
        ],
        values: Callable[[list[str]], int],
    ) -> None:
        """Reads what is reached from a schema through simple ones."""

    def settle(self) -> int:
        """Finds which schemas can hold a value, by the heights that positions have so far; how
        many."""

    def alive(self, schema: int) -> bool:
        """Whether a schema is known to hold a value."""

    def term(self, schema: int, lower: Callable[[Any], int]) -> int:
        """The term of a schema that was reached and is alive."""

    def define(self, lower: Callable[[Any], int]) -> bool:
        """Defines the rules that terms made so far call; False when there were none."""

class Recognizer:
    """A machine over bytes without a vocabulary: what `Grammar.accepts` runs on."""

    def __init__(self, store: TermStore, start: int, limits: Limits = ...) -> None:
        """GrammarError (left recursion through a template, undefined rule), UnsatisfiableGrammar,
        LimitExceeded."""
    def accepts(self, text: bytes) -> bool: ...
    def accepts_prefix(self, text: bytes) -> bool: ...
    def longest_prefix(self, text: bytes) -> int:
        """How many bytes of `text` are the start of a text of the language."""

class LalrTables:
    """A Lark grammar for `parser="lalr"` as data; grammar/lark/lalr.py makes it of Lark's own
    tables and lexers (automata/lark_source.hpp says what each part means)."""

    def __init__(
        self,
        *,
        program: Sequence[tuple[int, int, int, int, Sequence[int]]],
        classes: Sequence[Sequence[tuple[int, int]]],
        behinds: Sequence[int],
        behinds_stay_inside: bool,
        terminals: Sequence[tuple[str, int, bool]],
        scanners: Sequence[tuple[Sequence[int], Sequence[tuple[int, Sequence[int]]]]],
        rules: Sequence[tuple[int, int]],
        nonterminals: int,
        states: Sequence[tuple[int, Sequence[tuple[int, int]], Sequence[tuple[int, int]]]],
        start: int,
        end: int,
        consistent: bool,
    ) -> None:
        """Terminals are (name, first instruction or 2**32 - 1, ignored); rules (nonterminal,
        length); states (scanner, actions, gotos), an action being (terminal, state + 1) or
        (terminal, -rule - 1), the end of the text the last terminal. GrammarError when a number is
        out of range."""

class LalrRecognizer:
    """Lark's LALR parser over bytes without a vocabulary: what a `LalrGrammar` is asked by."""

    def __init__(self, tables: LalrTables, limits: Limits = ...) -> None:
        """UnsatisfiableGrammar when the parser accepts no text, LimitExceeded."""
    def accepts(self, text: bytes) -> bool: ...
    def accepts_prefix(self, text: bytes) -> bool: ...
    def longest_prefix(self, text: bytes) -> int:
        """How many bytes of `text` are the start of a text that is accepted."""

class CharacterMachine:
    """A grammar's machine stepped by whole characters: a deterministic automaton to explore.

    A state is an int, made when first reached; from every state some end can be reached. Each text
    of the language is exactly one path. A regular language has finitely many states; not
    minimised, so two states may have the same texts ahead."""

    def __init__(self, store: TermStore, start: int, limits: Limits = ...) -> None:
        """GrammarError (left recursion, undefined rule), UnsatisfiableGrammar, LimitExceeded."""
    @property
    def start(self) -> int: ...
    def is_final(self, state: int) -> bool:
        """Whether a text may end here."""
    def arcs(self, state: int) -> list[tuple[tuple[tuple[int, int], ...], int]]:
        """Where each character leads: (inclusive code point ranges, next state). Each next state
        comes once; characters in no range end every text. 10 to 100 us."""
    def step(self, state: int, code_point: int) -> int | None:
        """Where one character leads; None when nowhere."""
    @property
    def remembers(self) -> bool:
        """Whether values must differ somewhere. Then an arc leads to the state of one of its
        characters, and `step` tells those of the others."""
    def shortest(self, state: int) -> int:
        """The characters of the shortest text from here to an end. Where values must differ, of a
        text in which they need not, so there may be none as short."""

class TokenIndex:
    """A vocabulary's trie and the frame masks shared by every constraint on it."""

    def __init__(
        self,
        tokens: Sequence[bytes],
        ordinary: Sequence[bool],
        eos_token_ids: Sequence[int],
        mask_bits: int,
        limits: Limits = ...,
    ) -> None:
        """tokens[i] is the text of id i; only ids with ordinary[i] (and bytes) match text."""
    @property
    def mask_words(self) -> int: ...
    def stats(self) -> dict[str, int]: ...

class Constraint:
    """A grammar on a vocabulary; share it between threads. Made by `grammaton.compile`."""

    def __init__(
        self,
        store: TermStore,
        start: int,
        index: TokenIndex,
        limits: Limits = ...,
        tokens: Sequence[tuple[int, Sequence[tuple[int, int]]]] = ...,
        rehearse: bool = ...,
    ) -> None:
        """`tokens` gives the ids that each of the store's token sets has in the vocabulary. To
        `rehearse` is to prepare masks of a grammar with recursion, for some tens of ms."""
    @staticmethod
    def from_lalr(tables: LalrTables, index: TokenIndex, limits: Limits = ...) -> Constraint:
        """On Lark's LALR parser: `node`, `rule_name` and `param_value` raise GrammarError, and
        `Matcher.stacks` is empty."""
    def matcher(self) -> Matcher: ...
    def node(self, term: int) -> tuple[object, ...]:
        """One level of a term that `Matcher.stacks` names, as `TermStore.node` gives it. The terms
        are those of the constraint's own store, not of the grammar's; three kinds more are there:
        ("keys", ((byte, term), ...)), texts lifted through JSON's escapes, as a trie; ("members",
        (text, ...)), the same as a list; ("without", t, seen), a value that must differ from
        others."""
    def rule_name(self, rule: int) -> str: ...
    def param_value(self, param: int) -> tuple[tuple[int, ...], tuple[int, ...]]: ...
    @property
    def has_captures(self) -> bool:
        """Whether the grammar has rules that are captured."""
    @property
    def memory_bytes(self) -> int:
        """About how many bytes the constraint holds by now: terms, frames, finished masks. Frame
        masks belong to the vocabulary and are not counted. Never waits for another thread."""
    def stats(self) -> dict[str, int]: ...

class Matcher:
    """One sequence's position in a constraint. Used by one thread at a time."""

    def fill_mask(self, out: NDArray[np.int32], row: int = 0) -> None:
        """Writes the mask of allowed tokens into `out` of shape (W,), or row `row` of (B, W), W
        being ceil(V / 32); int32, CPU memory, contiguous rows, writable. VocabularyError otherwise.
        A NumPy array, a PyTorch tensor, or anything else with buffers or DLPack.

        Token i is bit i % 32 of word i // 32. After the end the mask is empty. 0.3 us when the
        state was visited before (0.8 into a tensor), a few us when not."""
    def mask(self) -> NDArray[np.int32]:
        """The mask in a new array of shape (ceil(V / 32),)."""
    def accept(self, token_id: int) -> bool:
        """Takes a token. False, and nothing changes, when the mask forbids it; VocabularyError
        when no such id exists."""
    def accept_bytes(self, data: bytes) -> bool:
        """Takes text, however it would be cut into tokens; one accept for `rollback`."""
    def validate(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` could be accepted in turn; changes nothing."""
    def rollback(self, n: int) -> None:
        """Undoes the last n accepts; VocabularyError when fewer were made."""
    def fork(self) -> Matcher:
        """A matcher of its own at the same position."""
    def reset(self) -> None:
        """Back to the start."""
    @property
    def is_complete(self) -> bool:
        """Whether the text may end here."""
    @property
    def is_finished(self) -> bool:
        """Whether an end-of-sequence token was taken."""
    @property
    def state(self) -> int:
        """The number of this position in the constraint. Matchers of one constraint with equal
        numbers allow the same texts; with different numbers they may, too."""
    @property
    def temperature(self) -> float | None:
        """The highest temperature that a rule in which the next token may be asks for."""
    def captures(self) -> dict[str, list[bytes]]:
        """What captured rules matched so far, by name, in the order of the text; rules that are not
        over are left out. A text that can be read in several ways is read in one of them, the same
        each time. Found by a parse of what was accepted: some 10 us a byte, and only when asked."""
    def forced_bytes(self) -> bytes:
        """The text that must follow (at most 4,096 bytes of it)."""
    def stacks(self, *, limit: int = 16) -> list[tuple[int, ...]]:
        """The ways in which the text so far can be understood, for looking at: each is the terms
        that are still to be said, innermost first (see `Constraint.node`). At most `limit` of
        them; an ambiguous grammar has many. Empty once finished. VocabularyError if limit < 1."""
    def forced_tokens(self, *, mode: Literal["exact"] = "exact") -> list[int]:
        """Tokens that must follow, each the only one its mask leaves (at most 64). The tokens that
        the tokenizer itself would write for `forced_bytes` are the engine's to find."""

def apply_masks(
    scores: NDArray[Any],
    masks: NDArray[np.int32],
    out: NDArray[Any],
    *,
    excluded: int,
    threads: int = 1,
) -> None:
    """Writes scores whose tokens are allowed, and `excluded` for all others.

    Args:
        scores: shape (B, V), the bits of floats as int16, int32 or int64; rows contiguous.
        masks: shape (B, W), rows contiguous; scores past them are excluded.
        out: as `scores`: other memory, or the same array.
        excluded: the bits of the value, as a signed integer of that size.
        threads: the most threads to use, the caller's among them, 1 to 256.

    Raises:
        VocabularyError: arrays of another shape or kind, `threads` out of range.
        TypeError: no arrays in CPU memory.
    """

def same_rows(a: NDArray[np.int64], b: NDArray[np.int64], columns: int) -> bool:
    """Whether the first `columns` ids of the rows of two arrays are the same.

    Raises:
        VocabularyError: the arrays have other numbers of rows, or fewer columns.
        TypeError: no arrays of ids in CPU memory.
    """

def fill_masks(
    matchers: Sequence[Matcher | None],
    out: NDArray[np.int32],
    *,
    threads: int | None = None,
    changed_only: bool = False,
) -> NDArray[np.int64]:
    """Writes the mask of `matchers[i]` into row i of `out`, without the GIL, on several threads.

    Args:
        matchers: one a row; of any constraints whose masks are equally wide. A row whose entry is
            None is left as it is. The same matcher may stand in several rows.
        out: shape (len(matchers), W), W being ceil(V / 32); int32, CPU memory, contiguous rows,
            writable, as for `Matcher.fill_mask`.
        threads: the most threads to use, the caller's among them, 1 to 256; by default one for
            each CPU the process may use, at most 16. The others sleep between calls.
        changed_only: leave rows alone that hold their mask already.

    Returns:
        The rows that were written, ascending, shape (C,): all that have a matcher, or, with
        `changed_only`, exactly those whose words are now others than before the call. So whoever
        keeps a copy of `out` has to copy just these.

    Raises:
        BatchLimitExceeded: a bound of `Limits` was met in some rows. Their masks are empty; all
            others are filled.
        VocabularyError: an array of another shape or kind, a row that is no Matcher, masks of
            different widths, `threads` out of range. Nothing is written then.

    Masks that are finished are copied, 0.3 us a row at 128k tokens. A constraint makes its masks
    one by one, so threads help where the rows are of several constraints, or very many."""
