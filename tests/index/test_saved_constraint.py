"""Saved constraints: what is loaded allows what was compiled; any other bytes are a typed error."""

from __future__ import annotations

import json
import random
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from grammaton import (
    Constraint,
    Grammar,
    GrammarError,
    GrammatonError,
    Indenter,
    LimitExceeded,
    Limits,
    Vocabulary,
    VocabularyError,
    compile,
    load_constraint,
    save_constraint,
)
from grammaton._core import TermStore
from grammaton.index.saved_constraint import pack_constraint, unpack_constraint
from tests.strategies import Plan, plans, within_budget

TOKENS = [
    *(bytes([byte]) for byte in range(256)),
    *(b'{"', b'":', b'", "', b"true", b"12", b"ab", "é".encode(), "漢字".encode(), b"  "),
]
VOCABULARY = Vocabulary([*TOKENS, b"", b""], eos_token_ids=len(TOKENS), special_tokens={
    "<end>": len(TOKENS), "<tool>": len(TOKENS) + 1})  # fmt: skip

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "é"]}, "uniqueItems": True},
        "size": {"type": "number", "multipleOf": 0.25, "minimum": 0},
        "next": {"$ref": "#"},
    },
    "required": ["name"],
    "minProperties": 2,
}
GRAMMARS = {
    "schema": Grammar.from_json_schema(SCHEMA),
    "any order": Grammar.from_json_schema(SCHEMA, key_order="any"),
    "regex": Grammar.from_regex(r"(?!foo)\w{2,5}(é|è|漢.)?[^a-z]*"),
    "recursion": Grammar.from_text('start ::= "(" start ")" start | "x" | start "+" start'),
    "indentation": Grammar.from_lark(
        'start: "a:" _NL _INDENT ("b" _NL)+ _DEDENT\n%declare _INDENT _DEDENT\n_NL: /\\n[ ]*/\n',
        indenter=Indenter(newline="_NL", max_step=2),
    ),
    "captures": Grammar.from_lark(
        'start: x "," y\nx[capture, max_tokens=3]: /[a-z]+/\ny[capture="z", suffix=";"]: /.*/\n'
    ),
    "tokens": Grammar.from_lark('start: <tool> "a"+ | <[0-3]> "b"\n'),
}


def allowed(constraint: Constraint, seed: int) -> list[bytes]:
    """The masks along a walk that a seed decides."""
    matcher, rng, masks = constraint.matcher(), random.Random(seed), []
    for _ in range(25):
        masks.append(matcher.mask().tobytes())
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
        ids = np.flatnonzero(bits).tolist()
        if not ids:
            break
        matcher.accept(rng.choice(ids))
    return masks


@pytest.mark.parametrize("name", GRAMMARS)
def test_what_is_loaded_allows_what_was_compiled(name: str, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    made = save_constraint(path, GRAMMARS[name], VOCABULARY)
    loaded = load_constraint(path, VOCABULARY)
    for seed in range(8):
        assert allowed(loaded, seed) == allowed(made, seed)


@settings(max_examples=max(settings().max_examples // 2, 1))
@given(plans())
@within_budget
def test_terms_come_back_as_they_were(plan: Plan) -> None:
    store = TermStore()
    start = plan.build(store)
    loaded, term = TermStore.load(store.save(start))
    assert str(Grammar(loaded, term)) == str(Grammar(store, start))


def test_it_belongs_to_its_vocabulary(tmp_path: Path) -> None:
    save_constraint(tmp_path / "saved", GRAMMARS["regex"], VOCABULARY)
    same = Vocabulary([*TOKENS, b"", b""], eos_token_ids=len(TOKENS),
                      special_tokens=VOCABULARY.special_tokens)  # fmt: skip
    assert load_constraint(tmp_path / "saved", same).matcher().accept(ord("b"))
    other = Vocabulary([*TOKENS, b"", b"x"], eos_token_ids=len(TOKENS))
    with pytest.raises(VocabularyError, match="other tokens"):
        load_constraint(tmp_path / "saved", other)


def signed(body: bytes) -> bytes:
    return body + blake2b(body, digest_size=32).digest()


@pytest.mark.parametrize("name", ["recursion", "nested"])
def test_what_is_loaded_is_rehearsed_as_what_was_compiled(name: str) -> None:
    nested = Grammar.from_gbnf('root ::= "(" root ")" | [a-z]*')
    grammar = nested if name == "nested" else GRAMMARS[name]
    data = pack_constraint(grammar, VOCABULARY)
    walked = []
    for each in (grammar, unpack_constraint(data, VOCABULARY)):
        assert each.rehearsed == (name == "nested")
        walked.append(compile(each, Vocabulary(TOKENS, eos_token_ids=0)).stats()["walk_nodes"])
    assert walked[0] == walked[1]
    assert (walked[0] > 0) == (name == "nested")


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    with pytest.raises(GrammarError, match="can't read"):
        load_constraint(path, VOCABULARY)
    save_constraint(path, GRAMMARS["schema"], VOCABULARY)
    data = path.read_bytes()
    body = data[:-32]
    for wrong, why in (
        (b"", "no constraint"),
        (b"\x80\x04}", "no constraint"),
        (data[:40], "cut short"),
        (data[:-1], "damaged"),
        (data + b"\0", "damaged"),
        (data[:99] + bytes([data[99] ^ 1]) + data[100:], "damaged"),
        (signed(body[:8] + b"\x01" + body[9:]), "version 1; this grammaton reads version 2"),
        (signed(body[:8] + b"\x03" + body[9:]), "version 3"),
        (signed(body[:12] + b"\x02" + body[13:]), "flags"),
        (signed(body[:12] + b"\x01\0\0\x80" + body[16:]), "flags"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(GrammarError, match=why):
            load_constraint(path, VOCABULARY)
    lalr = Grammar.from_lark('start: "a"', parser="lalr")
    with pytest.raises(GrammarError, match="LALR"):
        save_constraint(path, lalr, VOCABULARY)


@pytest.mark.parametrize("name", GRAMMARS)
def test_hostile_bytes_are_a_typed_error_or_a_grammar(name: str) -> None:
    """With a right digest: what can be compiled then walks without a dead end that crashes."""
    data = pack_constraint(GRAMMARS[name], VOCABULARY)[:-32]
    rng, taken = random.Random(name), 0
    limits = Limits(max_terms=50_000, max_step_terms=2_000, max_frames=20_000)
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 6))):
            changed[rng.randrange(44, len(data))] = rng.choice((0, 1, rng.randrange(256), 255))
        if rng.random() < 0.2:
            del changed[rng.randrange(44, len(changed)) :]
        try:
            grammar = unpack_constraint(signed(bytes(changed)), VOCABULARY, limits=limits)
            allowed(compile(grammar, VOCABULARY, limits=limits), 1)
            taken += 1
        except GrammatonError:
            pass
    assert taken < 150


def test_bytes_are_whole_characters() -> None:
    """Two bytes, and one after the other, are é; either alone is a text that no front end makes."""
    parts = b"\0\0\x03" + b"\x40\xc3" + b"\x40\xa9" + b"\x04\x02\x01"
    loaded, start = TermStore.load(parts + b"\x01")
    assert Grammar(loaded, start).accepts("é")
    for wrong in (parts + b"\x02", parts + b"\x03", parts + b"\x01\0"):
        with pytest.raises(GrammarError, match="damaged"):
            TermStore.load(wrong)


def test_a_small_file_makes_no_large_grammar() -> None:
    """Each term is the one before, twice: 2**40 bytes of text in 200 bytes."""
    double = b"".join(b"\x04\x01\x01" for _ in range(40))
    with pytest.raises(LimitExceeded):
        TermStore.load(b"\0\0\x29" + b"\x40a" + double + b"\x01", Limits(max_terms=10_000))


def test_json_data_is_not_taken_for_a_constraint() -> None:
    with pytest.raises(GrammarError, match="no constraint"):
        unpack_constraint(json.dumps(SCHEMA).encode(), VOCABULARY)
