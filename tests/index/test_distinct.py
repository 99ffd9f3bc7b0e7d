"""Values that must differ: masks against all texts of small languages, spelled out one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from grammaton import Grammar, Vocabulary, compile
from grammaton._core import Recognizer
from grammaton.errors import GrammarError, UnsatisfiableGrammar
from grammaton.limits import Limits
from tests.reference import mask_to_ids

Spellings = dict[str, list[str]]
"""By value, all the texts that spell it."""

PLAIN: Spellings = {"": ['""'], "a": ['"a"'], "b": ['"b"'], "ab": ['"ab"']}
ESCAPED: Spellings = {"a": ['"a"', '"\\u0061"'], "b": ['"b"', '"\\u0062"']}
NUMBERS: Spellings = {
    "1": ["1", "1.0", "1.00"],
    "2": ["2", "2.0", "2.00"],
    "12": ["12", "12.0", "12.00"],
    "21": ["21", "21.0", "21.00"],
}
MIXED: Spellings = {**PLAIN, "true": ["true"], "1": ["1"], "11": ["11"]}

PIECES = [
    *('["', '","', '"a"', '"]', '",', 'a","', 'a","a', 'a","b"', '","a"]', '["a","a"', '["a","b"'),
    *("1,1", "1,2", "1,1,", ",1", "12", "1]", ".0", "1.0,1", "0,", "2,12,1", "true", ",t", "ue"),
    *("\\u", "\\u0061", '\\u0061","', "006", '1"', "rue,"),
]

# (what an item may be as an expression of the text form, its spellings, the most items)
CASES = {
    "strings": ('"\\"" distinct_text("a"? "b"?)', PLAIN, 3),
    "escapes": ('"\\"" distinct_text([ab])', ESCAPED, 2),
    "numbers": ('distinct(("1" | "2" | "12" | "21") ("." "0"{1,2})?)', NUMBERS, 3),
    "mixed": ('"\\"" distinct_text("a"? "b"?) | distinct("true" | "1" "1"?)', MIXED, 2),
}


def arrays(items: Spellings, most: int) -> Iterator[str]:
    """All arrays of different items, in all spellings."""
    for count in range(most + 1):
        for values in product(items, repeat=count):
            if len(set(values)) < count:
                continue
            for texts in product(*(items[value] for value in values)):
                yield f"[{','.join(texts)}]"


def setup(name: str) -> tuple[Grammar, set[str]]:
    item, spellings, most = CASES[name]
    more = f'("," ({item})){{0,{most - 1}}}'
    grammar = Grammar.from_text(f'start ::= scope "[" (({item}) {more})? "]"')
    return grammar, set(arrays(spellings, most))


@pytest.mark.parametrize("name", CASES)
def test_the_language(name: str) -> None:
    grammar, texts = setup(name)
    assert all(grammar.accepts(text) for text in texts)
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    chars = sorted({char for text in texts for char in text} | {"x"})
    for prefix in prefixes:
        assert grammar.accepts(prefix) == (prefix in texts)
        for char in chars:
            longer = prefix + char
            assert grammar.accepts_prefix(longer) == (longer in prefixes), longer


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", CASES)
def test_masks(name: str, seed: int) -> None:
    grammar, texts = setup(name)
    rng = random.Random(f"{name} {seed}")
    singles = sorted({char for text in texts for char in text})
    pieces = [piece for piece in PIECES if set(piece) <= set(singles)]
    # Whole stretches of texts, too, so that a token ends one item and says another.
    for text in rng.sample(sorted(texts), min(40, len(texts))):
        start = rng.randrange(len(text))
        pieces.append(text[start : start + rng.randint(2, 9)])
    tokens = list(dict.fromkeys([*singles, *(piece for piece in pieces if piece)]))
    vocabulary = Vocabulary(
        [*(token.encode() for token in tokens), b""], eos_token_ids=[len(tokens)]
    )
    constraint = compile(grammar, vocabulary)
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    for _ in range(25):
        matcher, said = constraint.matcher(), ""
        states = [(matcher.fork(), said)]
        while True:
            wanted = {i for i, token in enumerate(tokens) if said + token in prefixes}
            wanted |= {len(tokens)} if said in texts else set()
            assert mask_to_ids(matcher.mask()) == wanted, (
                said,
                [tokens[i] for i in mask_to_ids(matcher.mask()) ^ wanted if i < len(tokens)],
            )
            assert matcher.is_complete == (said in texts)
            for i in range(len(tokens)):
                assert matcher.fork().accept(i) == (i in wanted)
            choices = sorted(wanted - {len(tokens)})
            if not choices:
                break
            token = rng.choice(choices)
            assert matcher.accept(token)
            said += tokens[token]
            states.append((matcher.fork(), said))
        # Back, and on from somewhere else: states do not change.
        back = rng.randrange(len(states))
        matcher.rollback(len(states) - 1 - back)
        kept, said = states[back]
        assert mask_to_ids(matcher.mask()) == mask_to_ids(kept.mask())
        matcher.reset()
        assert mask_to_ids(matcher.mask()) == mask_to_ids(states[0][0].mask())


def test_scopes_within_scopes_and_ways_that_differ() -> None:
    # One way remembers and the other does not; the same text may go both.
    item = '"\\"" distinct_text([ab]*)'
    grammar = Grammar.from_text(
        f'start ::= list | other\nlist ::= scope "[" {item} ("," {item})* "]"\n'
        'other ::= "[" ("\\"" json([ab]*) "\\"" ",")* "0]"'
    )
    assert grammar.accepts('["a","b"]')
    assert not grammar.accepts('["a","a"]')
    assert grammar.accepts('["a","a",0]')
    assert grammar.accepts_prefix('["a","a"')
    member = '"\\"" distinct_text([a-c]+) ":" (start | "1")'
    nested = Grammar.from_text(f'start ::= scope "{{" {member} ("," {member})* "}}"')
    assert nested.accepts('{"a":{"a":1,"b":{"a":1}},"b":1}')
    assert not nested.accepts('{"a":{"a":1},"a":1}')
    assert not nested.accepts_prefix('{"a":{"a":1,"a"')
    assert Grammar.from_text(str(nested)) == nested


def test_what_is_no_grammar() -> None:
    with pytest.raises(GrammarError, match="no scope"):
        Grammar.from_text('start ::= distinct("a")').accepts("a")
    with pytest.raises(GrammarError, match="follows a rule"):
        Grammar.from_text('start ::= scope a "b"\na ::= distinct("a")').accepts("ab")
    with pytest.raises(GrammarError, match="empty text"):
        Grammar.from_text('start ::= scope distinct("a"?)')
    with pytest.raises(GrammarError, match="without rules"):
        Grammar.from_text('start ::= scope distinct(a)\na ::= "a"')
    empty = Grammar.from_text('start ::= scope distinct("a" & "b")')
    with pytest.raises(UnsatisfiableGrammar):
        Recognizer(empty.store, empty.start)


def test_sequences_after_many_values_begin_anew() -> None:
    """What was seen is freed with the sequences that saw it, so no number of them uses it up."""
    item = '"\\"" distinct_text([a-z]*)'
    grammar = Grammar.from_text(f'start ::= scope {item} ("," {item})*')
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_token_ids=256)
    constraint = compile(grammar, vocabulary, limits=Limits(max_terms=20_000))
    matcher = constraint.matcher()
    long = constraint.matcher()
    assert long.accept_bytes(b'"first",')
    masks, states = set(), set()
    for i in range(400):
        matcher.reset()
        states.add(matcher.state)
        masks.add(matcher.mask().tobytes())
        words = ["".join(chr(97 + i // 26**k % 26) for k in range(2)) + "x" * n for n in range(8)]
        text = ",".join(f'"{word}"' for word in words)
        assert matcher.accept_bytes(text.encode())
        assert matcher.is_complete
        assert not matcher.accept_bytes(f',"{words[3]}"'.encode())
    assert len(masks) == 1
    assert len(states) > 1  # of several generations, and none has another's numbers
    assert constraint.stats()["terms"] < 20_000
    assert constraint.memory_bytes < 20_000_000
    assert not long.accept_bytes(b'"first"')  # it goes on in its own
    assert long.accept_bytes(b'"second"')
    fork = long.fork()
    assert not fork.accept_bytes(b',"second"')
    assert not constraint.matcher().fork().accept_bytes(b'"a","a"')


@pytest.mark.parametrize(
    ("schema", "begins", "ends", "last"),
    [
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            *('["', '",', '","x'),
        ),
        (
            {"type": "object", "minProperties": 2, "additionalProperties": {"type": "string"}},
            *('{"', '":"', '":"","x'),
        ),
    ],
)
def test_tokens_over_two_values_are_tried_in_every_mask(
    schema: dict[str, object], begins: str, ends: str, last: str
) -> None:
    """What follows a value is kept for later masks where it is much; the tokens that the text so
    far decides about are not in it."""
    source = random.Random(1)
    texts = {ends + "".join(source.choices('abcdefgh1 ,{}[]"', k=6)) for _ in range(3_000)}
    tokens = [b"", *(bytes([b]) for b in range(256)), *sorted(map(str.encode, {*texts, last}))]
    vocabulary = Vocabulary(tokens, eos_token_ids=0)
    matcher = compile(Grammar.from_json_schema(schema), vocabulary).matcher()
    assert matcher.accept_bytes(begins.encode())
    for letter in "abc":
        assert matcher.accept_bytes(letter.encode())
        allowed = mask_to_ids(matcher.mask())
        assert tokens.index(last.encode()) in allowed
        for token in source.sample(range(257, len(tokens)), 300):
            assert (token in allowed) == (matcher.validate([token]) == 1), tokens[token]
