"""`Grammar`: a language as an immutable value, to print, combine and compile.

A grammar is a term store (`grammaton._core.TermStore`) and a start term in it. Combining grammars
of different stores copies both into a new store, linear in their size, so that no grammar ever
changes under another; terms are only ever added to a store. Whether a text belongs is decided by a
recognizer that is made at the first question and kept.

Two grammars are *equal* when their text forms are, that is, when they have the same structure after
the store's normalisation. Equal grammars have the same language; different ones may have it too.

Front ends are imported when they are first used: together they cost some 50 ms, and most programs
use one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from grammaton._core import Recognizer, TermStore
from grammaton.errors import GrammarError, PlacedError, UnsatisfiableGrammar
from grammaton.grammar.utf8 import check_utf8

if TYPE_CHECKING:
    from grammaton.grammar.ebnf_nodes import RulePlaces, TokenPlaces
    from grammaton.grammar.lark.indenter import Indenter
    from grammaton.grammar.python_types import Reader, Validators
    from grammaton.grammar.regex import Dialect

MAX_REPEAT = 2**32 - 2
"""The largest bound of a repetition."""

_REPR_WIDTH = 60


class Grammar:
    """A language: which texts are allowed.

    Made by `Grammar.literal` and the `from_…` functions.
    `a + b` is a text of `a` and then one of `b`; `a | b` one of either; `a & b` one of both and
    `~a` one outside `a`, for grammars without rules. `str(grammar)` is the text form that
    `from_text` reads.

    Attributes:
        store, start: the terms. Internal to the library; not to be changed.
        token_places: where its text mentioned tokens, for errors. Internal as well.
        rule_places: where it defines rules, for errors of the core. Internal as well.
        rehearsed: whether `compile` prepares masks, which pays for grammars with recursion.
            Internal as well.
    """

    __slots__ = (
        "__weakref__",
        "_reader",
        "_recognizer",
        "_text",
        "rehearsed",
        "rule_places",
        "start",
        "store",
        "token_places",
    )

    store: TermStore
    start: int
    token_places: TokenPlaces
    rule_places: RulePlaces
    rehearsed: bool
    _recognizer: Recognizer | Literal[False] | None
    _text: str | None
    _reader: Reader | None

    def __init__(
        self,
        store: TermStore,
        start: int,
        *,
        token_places: TokenPlaces | None = None,
        rule_places: RulePlaces | None = None,
        rehearsed: bool = False,
    ) -> None:
        if not isinstance(store, TermStore):
            raise GrammarError(
                "use Grammar.from_regex, from_json_schema, from_choices, literal or from_text; "
                f"the constructor takes a TermStore, not {type(store).__name__}"
            )
        object.__setattr__(self, "store", store)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "token_places", token_places or {})
        object.__setattr__(self, "rule_places", rule_places or {})
        object.__setattr__(self, "rehearsed", rehearsed)
        object.__setattr__(self, "_recognizer", None)
        object.__setattr__(self, "_text", None)
        object.__setattr__(self, "_reader", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Grammar is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Grammar is immutable; {name} cannot be deleted")

    # Making

    @classmethod
    def literal(cls, text: str) -> Grammar:
        """Exactly this text.

        Raises:
            GrammarError: not a str, or it holds a lone surrogate.
        """
        store = TermStore()
        return cls(store, store.literal(check_utf8(text, "a literal").encode()))

    @classmethod
    def from_choices(cls, texts: Iterable[str]) -> Grammar:
        """Any of these texts, however many: they are kept as a trie.

        Raises:
            GrammarError: no texts, a str in place of a list of them, or a text with a lone
                surrogate.
        """
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise GrammarError(
                f"from_choices takes a list of str, not {type(texts).__name__}; "
                "for a single text use Grammar.literal"
            )
        encoded = [check_utf8(text, "a choice").encode() for text in texts]
        if not encoded:
            raise GrammarError("from_choices needs at least one text; nothing could be generated")
        store = TermStore()
        return cls(store, store.literals(encoded))

    @classmethod
    def from_regex(
        cls,
        pattern: str,
        *,
        dialect: Dialect = "python",
        search: bool = False,
        flags: str = "",
    ) -> Grammar:
        """The texts that a regular expression matches. docs/regex.md has what is supported.

        Args:
            pattern: the regular expression.
            dialect: "python" (str patterns of `re`) or "ecma" (ECMA-262 with the flag `u`).
            search: False for the texts that match from end to end (`re.fullmatch`), True for
                those that contain a match (`re.search`, JSON Schema's `pattern`).
            flags: letters that apply to the whole pattern: any of "aimsux" in the dialect
                "python", as in `(?im)`; of "imsu" in "ecma".

        Raises:
            GrammarError: a syntax error or an unsupported construct, with its place; an unknown
                dialect or flag.
        """
        from grammaton.grammar.regex import pattern_term

        store = TermStore()
        term = pattern_term(
            store, pattern, dialect=dialect, search=search, flags=flags, lenient=False
        )
        return cls(store, term)

    @classmethod
    def from_json_schema(
        cls,
        schema: object,
        *,
        key_order: Literal["schema", "any"] = "schema",
        whitespace: Literal["flexible", "compact"] | int = "flexible",
        additional_properties: bool | None = None,
        ensure_ascii: bool = False,
        escapes: Literal["any", "canonical"] = "any",
        resources: Mapping[str, object] | None = None,
    ) -> Grammar:
        """The JSON texts of the instances of a JSON Schema.

        Args:
            schema: the schema as Python values, or as JSON text (str or bytes).
            key_order: "schema" (declared keys in their order, then others) or "any".
            whitespace: between tokens: "flexible" (bounded), "compact" (none), or an indent width.
            additional_properties: what holds where a schema does not say; None is the
                specification's own rule (allowed).
            ensure_ascii: True lets no character beyond ASCII stand as itself, only as an escape.
            escapes: "any" spelling of a character, or the "canonical" one of `json.dumps` alone.
            resources: the schemas that references may lead to out of this one, by URI; as data or
                JSON text. Nothing is fetched.

        Raises:
            UnsupportedKeyword: a keyword that is not enforced yet, with its JSON Pointer.
            UnsatisfiableGrammar: no instance satisfies the schema.
            GrammarError: the schema is not JSON, malformed, or refers to nowhere.
        """
        from grammaton.grammar.json_schema.lower import grammar_from_json_schema

        store, start = grammar_from_json_schema(
            schema,
            key_order=key_order,
            whitespace=whitespace,
            additional_properties=additional_properties,
            ensure_ascii=ensure_ascii,
            escapes=escapes,
            resources=resources,
        )
        return cls(store, start)

    @classmethod
    def from_lark(
        cls,
        text: str,
        *,
        start: str = "start",
        parser: Literal["earley", "lalr"] = "earley",
        lexer: Literal["dynamic_complete", "contextual", "basic"] | None = None,
        import_paths: Sequence[str | PathLike[str]] = (),
        max_ignored: int | Literal["default"] | None = "default",
        declared: Mapping[str, str | None] | None = None,
        indenter: Indenter | None = None,
    ) -> Grammar:
        """The language of a Lark grammar, as one of Lark's parsers reads it (docs/grammars.md).

        Args:
            text: the grammar.
            start: the rule whose texts are the language.
            parser: "earley", with the lexer "dynamic_complete", is scannerless: any way of cutting
                a text into terminals counts. "lalr" is Lark's LALR(1) parser with its lexer:
                exactly the texts that `lark.Lark(text, parser="lalr", lexer=lexer)` parses.
            lexer: for "lalr" either "contextual", the default, or "basic".
            import_paths: folders where `%import` looks first.
            max_ignored: characters that `%ignore` allows in a row, so that no model can loop in
                them; None is no bound. The default is 100, and None with "lalr", whose language
                is Lark's own: a bound is refused there.
            declared: what terminals of `%declare` match, by name: a regular expression of `re`, or
                None for no text at all, which is what Lark's own lexers make of them.
            indenter: what indentation means, as `postlex` for Lark; with "earley".

        Raises:
            UnsupportedKeyword: an extension or look-around that is not supported; a pair of parser
                and lexer that is not; `max_ignored` with "lalr".
            UnsatisfiableGrammar: the start can never end.
            GrammarError: a syntax error, a name that is missing or defined twice, a recursive
                terminal, an import that does not exist, a template that grows, with its place; what
                Lark refuses, such as conflicts under "lalr".
        """
        from grammaton.grammar.lark.modes import check_mode

        mode = check_mode(parser, lexer, declared, indenter, max_ignored)
        if mode is not None:
            from grammaton.grammar.lalr_grammar import LalrGrammar

            return LalrGrammar(text, start=start, lexer=mode, import_paths=import_paths)
        from grammaton.grammar.lark.lower import lower_lark

        store = TermStore()
        places: TokenPlaces = {}
        rule_places: RulePlaces = {}
        term = lower_lark(
            store,
            text,
            start=start,
            import_paths=import_paths,
            max_ignored=100 if max_ignored == "default" else max_ignored,
            declared={} if declared is None else declared,
            indenter=indenter,
            places=places,
            rule_places=rule_places,
        )
        return cls(store, term, token_places=places, rule_places=rule_places, rehearsed=True)

    @classmethod
    def from_type(
        cls,
        type: Any,
        *,
        key_order: Literal["schema", "any"] = "schema",
        whitespace: Literal["flexible", "compact"] | int = "flexible",
        additional_properties: bool = False,
        ensure_ascii: bool = False,
        escapes: Literal["any", "canonical"] = "any",
        validators: Validators = "refuse",
    ) -> Grammar:
        """The JSON texts of the values of a Python type (docs/types.md).

        `value` reads such a text as that type. A grammar combined of others has lost its type.

        Args:
            type: a dataclass, TypedDict, NamedTuple, Enum, pydantic model, anything that `typing`
                makes of such; or a callable, whose values are dicts of its arguments.
            key_order, whitespace, ensure_ascii, escapes: as for `from_json_schema`.
            additional_properties: whether properties may be written that the type ignores.
            validators: code that decides on values, as pydantic's validators: "refuse" such types,
                or "run" it when the value is built, which may then fail.

        Raises:
            UnsupportedType: a part of the type can't be enforced exactly; with its path.
            UnsatisfiableGrammar: the type has no values.
        """
        from grammaton.grammar.python_types import Reader

        reader = Reader(type, additional_properties=additional_properties, validators=validators)
        store, start = reader.grammar(
            key_order=key_order,
            whitespace=whitespace,
            ensure_ascii=ensure_ascii,
            escapes=escapes,
        )
        made = cls(store, start)
        object.__setattr__(made, "_reader", reader)
        return made

    @classmethod
    def from_gbnf(cls, text: str, *, start: str = "root") -> Grammar:
        """The language of a GBNF grammar, llama.cpp's notation (docs/grammars.md).

        Args:
            text: the grammar.
            start: the rule whose texts are the language.

        Raises:
            UnsatisfiableGrammar: the start can never end.
            GrammarError: a syntax error, a rule that is missing or defined twice, with its place.
        """
        from grammaton.grammar.ebnf_lower import lower_rules
        from grammaton.grammar.gbnf.parser import read_gbnf

        store = TermStore()
        places: TokenPlaces = {}
        rule_places: RulePlaces = {}
        term = lower_rules(store, read_gbnf(text), start, places=places, rule_places=rule_places)
        return cls(store, term, token_places=places, rule_places=rule_places, rehearsed=True)

    @classmethod
    def from_ebnf(cls, text: str, *, start: str | None = None) -> Grammar:
        """The language of a W3C EBNF grammar, the notation of XML's specification.

        Args:
            text: the grammar.
            start: the rule whose texts are the language; None is the first one.

        Raises:
            As `from_gbnf`; `UnsupportedKeyword` for constraints in prose.
        """
        from grammaton.grammar.ebnf.parser import read_ebnf
        from grammaton.grammar.ebnf_lower import lower_rules

        rules = read_ebnf(text)
        store = TermStore()
        first = next(iter(rules.by_name))
        rule_places: RulePlaces = {}
        term = lower_rules(store, rules, first if start is None else start, rule_places=rule_places)
        return cls(store, term, rule_places=rule_places, rehearsed=True)

    @classmethod
    def from_text(cls, text: str) -> Grammar:
        """Reads the text form (docs/text-form.md), which `str(grammar)` writes.

        Raises:
            GrammarError: a syntax error, or a rule that is missing or defined twice, with its
                place.
        """
        from grammaton.grammar.text_form import from_text

        store = TermStore()
        rule_places: RulePlaces = {}
        return cls(store, from_text(store, text, rule_places), rule_places=rule_places)

    @classmethod
    def from_tokens(
        cls, tokens: str | int | range | Iterable[str | int | range], *, negated: bool = False
    ) -> Grammar:
        """One token out of some, taken whole, whatever it spells: `<|end|>`, say.

        The tokens are letters beside the characters: no text spells them, and `&` and `~` don't
        take them. Which ids names have is looked up by `compile`.

        Args:
            tokens: one or several of: the name of a special token, or the whole text of another; an
                id; a range of ids.
            negated: any token but these, and but those that end a sequence.

        Raises:
            GrammarError: no tokens and not `negated`, or something else than names and ids.
        """
        names: list[str] = []
        ids: list[tuple[int, int]] = []
        for token in [tokens] if isinstance(tokens, str | int | range) else tokens:
            if isinstance(token, str):
                names.append(check_utf8(token, "the name of a token"))
                continue
            several: object = range(token, token + 1) if isinstance(token, int) else token
            if not isinstance(several, range) or isinstance(token, bool) or several.step != 1:
                raise GrammarError(f"a token is a name, an id or a range of ids, not {token!r}")
            if several:
                ids.append((several[0], several[-1]))
        if any(low < 0 or high > MAX_REPEAT for low, high in ids):
            raise GrammarError(f"token ids are between 0 and {MAX_REPEAT}")
        if not (names or ids or negated):
            raise GrammarError("from_tokens needs at least one token; nothing could be generated")
        store = TermStore()
        return cls(store, store.tokens(names, ids, negated))

    # Combining

    def __add__(self, other: object) -> Grammar:
        return self._with(other, TermStore.concat) if isinstance(other, Grammar) else NotImplemented

    def __or__(self, other: object) -> Grammar:
        return self._with(other, TermStore.union) if isinstance(other, Grammar) else NotImplemented

    def __and__(self, other: object) -> Grammar:
        if not isinstance(other, Grammar):
            return NotImplemented
        self._check_regular("&", "the left operand")
        other._check_regular("&", "the right operand")
        return self._with(other, TermStore.intersect)

    def __invert__(self) -> Grammar:
        self._check_regular("~", "the operand")
        return Grammar(self.store, self.store.complement(self.start))

    def repeat(self, min: int = 0, max: int | None = None) -> Grammar:
        """Between `min` and `max` texts of this grammar in a row; None is any number.

        Raises:
            GrammarError: not integers, or not 0 <= min <= max <= 2**32 - 2.
        """
        for name, bound in (("min", min), ("max", max)):
            if bound is None and name == "max":
                continue
            if not isinstance(bound, int) or isinstance(bound, bool):
                raise GrammarError(f"{name} must be an int, not {type(bound).__name__}")
            if not 0 <= bound <= MAX_REPEAT:
                raise GrammarError(f"{name} must be between 0 and {MAX_REPEAT}, not {bound}")
        if max is not None and max < min:
            raise GrammarError(f"min = {min} is above max = {max}")
        repeated = self.store.repeat(self.start, min, max)
        return Grammar(
            self.store, repeated, token_places=self.token_places, rule_places=self.rule_places
        )

    def optional(self) -> Grammar:
        """A text of this grammar, or none: `repeat(0, 1)`."""
        return self.repeat(0, 1)

    def many(self) -> Grammar:
        """Any number of texts of this grammar in a row: `repeat(0)`."""
        return self.repeat(0)

    def some(self) -> Grammar:
        """At least one text of this grammar, in a row: `repeat(1)`."""
        return self.repeat(1)

    # Asking

    def accepts(self, text: str | bytes) -> bool:
        """Whether a text is in the language; bytes are taken as UTF-8.

        Raises:
            GrammarError: not a text.
            LimitExceeded: see `grammaton.Limits`.
        """
        data = question(text)
        recognizer = self._recognize()
        return data is not None and recognizer is not None and recognizer.accepts(data)

    def accepts_prefix(self, text: str | bytes) -> bool:
        """Whether some text of the language starts with `text`; bytes may end inside a character.

        Raises:
            As `accepts`.
        """
        data = question(text)
        recognizer = self._recognize()
        return data is not None and recognizer is not None and recognizer.accepts_prefix(data)

    def value(self, text: str) -> Any:
        """What a text of the language stands for: a value of the type that `from_type` was given;
        JSON for other grammars.

        Raises:
            GrammarError: the text is no JSON or no such value, or building the value failed.
        """
        if self._reader is not None:
            return self._reader(text)
        try:
            return json.loads(text)
        except ValueError as error:
            raise GrammarError(f"the text is not JSON: {error}") from error

    def to_gbnf(self) -> str:
        """The grammar in GBNF, its start being `root`.

        Raises:
            UnsupportedKeyword: it has something GBNF cannot say (`&`, `~`, JSON's escapes, objects
                of a schema).
        """
        from grammaton.grammar.gbnf.printer import to_gbnf

        return to_gbnf(self.store, self.start)

    def __str__(self) -> str:
        text = self._text
        if text is None:
            from grammaton.grammar.text_printer import to_text

            text = to_text(self.store, self.start)
            object.__setattr__(self, "_text", text)
        return text

    def __repr__(self) -> str:
        text = str(self).removeprefix("start ::= ").rstrip("\n").replace("\n", " ")
        if len(text) > _REPR_WIDTH:
            text = text[: _REPR_WIDTH - 1] + "…"
        return f"<Grammar {text}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        same_term = self.store is other.store and self.start == other.start
        return same_term or str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self), self._reader)

    # Inside

    def placed(self, error: PlacedError) -> PlacedError:
        """An error of the core, with the place of the rule at fault where the grammar's text has
        it. Internal to the library."""
        place = self.rule_places.get(error.part) or self.rule_places.get("")
        if place is None or error.position is not None or error.pointer is not None:
            return error
        return place.error(error.message, kind=type(error))

    def _with(self, other: Grammar, build: Callable[[TermStore, list[int]], int]) -> Grammar:
        places = {**other.token_places, **self.token_places}
        rules = {**other.rule_places, **self.rule_places}
        for name in {"", *(other.rule_places.keys() & self.rule_places.keys())}:
            rules.pop(name, None)  # it may be either's
        if self.store is other.store:
            both = build(self.store, [self.start, other.start])
            return Grammar(self.store, both, token_places=places, rule_places=rules)
        store = TermStore()
        terms = [store.import_term(each.store, each.start) for each in (self, other)]
        return Grammar(store, build(store, terms), token_places=places, rule_places=rules)

    def _check_regular(self, operator: str, operand: str) -> None:
        if not self.store.is_regular(self.start):
            raise GrammarError(
                f"`{operator}` applies to grammars without rules and tokens, since recursive "
                f"languages are not closed under it; {operand} has some: {self!r}"
            )

    def _recognize(self) -> Recognizer | None:
        """The recognizer, None when the language is empty."""
        if self._recognizer is None:
            try:
                found: Recognizer | Literal[False] = Recognizer(self.store, self.start)
            except UnsatisfiableGrammar:
                found = False
            except PlacedError as error:
                raise self.placed(error) from None
            object.__setattr__(self, "_recognizer", found)
        return self._recognizer or None


def _restored(text: str, reader: Reader | None) -> Grammar:
    grammar = Grammar.from_text(text)
    object.__setattr__(grammar, "rule_places", {})  # of a text that nobody wrote
    object.__setattr__(grammar, "_reader", reader)
    return grammar


def question(text: object) -> bytes | None:
    """The bytes asked about; None when there are none, as a lone surrogate has no UTF-8 form."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise GrammarError(f"a text must be str or bytes, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
