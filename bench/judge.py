"""Who is right when two engines' masks differ: a witness that `jsonschema` has checked.

A *dispute* is a prefix and a token that one engine allows there and another forbids. It is judged
by *completions* of prefix and token, texts that the engines' grammars take no part in judging:

1. prefix + token + what the instance says from some later place on, without asking any engine;
2. texts that the allowing engine's own masks lead to, letters chosen at random, closing early.

Each is parsed by `json` (no repeated keys) and validated by `jsonschema`, formats included.
Verdicts:

- *forbidder wrong*: there is a valid completion, spelled as `json.dumps` spells it, keys in the
  order in which the schema declares them, then what it requires besides, then others, with
  whitespace that the forbidding engine writes. Its
  mask over-constrains. This is proof.
- *convention*: all valid completions found differ from that: other whitespace, key order or
  spelling (escapes, exponents). Both may be right by their own rules.
- *allower wrong*: the allowing engine led to an end, and every text it ended with is invalid. This
  is proof that it allows invalid texts with this prefix, if not that this token is the culprit.
- *format*: the same, but only for `format`, which JSON Schema lets an engine ignore.
- *dialect*: all that was found has a character on which Python's `re`, which `jsonschema` asks, and
  ECMA-262, which JSON Schema means, may disagree (a carriage return under `.`, U+FEFF under `\\s`,
  an `é` under `\\w`), and the schema has patterns.
- *undecided*: no completion reached an end, or `jsonschema` can't judge the schema (a reference to
  elsewhere, a pattern that Python doesn't know).

A missing witness proves nothing, so "undecided" clears nobody. Tokens that both engines allow or
both forbid are not looked at.

Cost: some milliseconds a dispute, and what jsonschema takes. The worker runs in the allowing
engine's process (`bench.isolation`).
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jsonschema
import numpy as np

from bench.isolation import REFUSED, do_items
from bench.measure import Worker, add_worker_arguments
from bench.peers import Mask, Peer, Refused, Whitespace
from bench.walks import EOS_TOKEN_ID, Walk, load

FORBIDDER, ALLOWER, CONVENTION, FORMAT, DIALECT, UNDECIDED = (
    "forbidder wrong",
    "allower wrong",
    "convention",
    "format",
    "dialect",
    "undecided",
)
VERDICTS = (FORBIDDER, ALLOWER, CONVENTION, FORMAT, DIALECT, UNDECIDED)

LINE_ENDS = "\r\u2028\u2029"
"""What `.` takes in Python's `re` and not in ECMA-262; `\\s` and `\\w` differ beyond ASCII."""
SEPARATORS = "\x1c\x1d\x1e\x1f"
"""Whitespace for Python only."""

TRIES = 4
LONGEST = 300
"""Steps after which a completion is given up."""

CLOSING = b'}]":, 0ntf{['
"""Single bytes that a completion prefers, first to last."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Judges the disputes of `FOLDER/disputes.json`: [walk, [[mask, token, whitespace], ...]]."""
    parser = argparse.ArgumentParser(description="The judge of `bench compare`.")
    add_worker_arguments(parser)
    options = parser.parse_args(arguments)
    walks = load(options.folder / "walks.json")
    disputes = json.loads((options.folder / "disputes.json").read_text())
    worker = Worker(options.engine, compact=options.compact)
    peer = worker.new_peer()
    do_items(
        (partial(_judge_walk, peer, worker, walks[i], d) for i, d in disputes[options.first :]),
        out=options.out,
    )


def _judge_walk(peer: Peer, worker: Worker, walk: Walk, disputes: list[Any]) -> dict[str, Any]:
    try:
        constraint = peer.compile(walk.schema)
    except Refused as error:
        return {"failed": REFUSED, "why": str(error)[:200]}
    verdicts = []
    for place, token_id, whitespace in disputes:
        prefix = walk.text[: walk.starts[place]].encode() + worker.tokens[token_id]
        rejoined = (prefix + walk.text[start:].encode() for start in walk.starts[place:][:40])
        # Asked for only when no text of the first kind settles it.
        led = partial(_led, peer, constraint, worker, [*walk.token_ids[:place], token_id])
        verdicts.append(judge(walk.schema, rejoined, led, whitespace=whitespace))
    return {"verdicts": verdicts}


def judge(
    schema: Any,
    rejoined: Iterator[bytes],
    led: Callable[[], Iterator[bytes]],
    *,
    whitespace: Whitespace,
) -> tuple[str, str]:
    """The verdict on one dispute, and the text it rests on ("" for none).

    Args:
        schema: the JSON Schema.
        rejoined: completions that no engine was asked about.
        led: gives the texts at which the allowing engine's masks end.
        whitespace: what the forbidding engine writes between JSON tokens.
    """
    try:
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        checked = kind(schema, format_checker=kind.FORMAT_CHECKER)
        unchecked = kind(schema)
        other = dialect = ""
        patterns = _has_patterns(schema)

        def reads_alike(text: bytes, value: Any) -> bool:
            nonlocal dialect
            if patterns and value is not INVALID and _dialects_differ(value):
                dialect = text.decode()
                return False
            return True

        for text in rejoined:
            value = parse(text)
            if value is not INVALID and checked.is_valid(value) and reads_alike(text, value):
                if is_plain(text.decode(), value, schema, whitespace):
                    return FORBIDDER, text.decode()
                other = text.decode()
        wrong, only_format = [], []
        for text in led():
            value = parse(text)
            if not reads_alike(text, value):
                continue
            if value is INVALID or not unchecked.is_valid(value):
                wrong.append(text.decode(errors="replace"))
            elif not checked.is_valid(value):
                only_format.append(text.decode())
            elif is_plain(text.decode(), value, schema, whitespace):
                return FORBIDDER, text.decode()
            else:
                other = text.decode()
    except Exception as error:  # jsonschema raises whatever its parts do on odd schemas
        return UNDECIDED, f"{type(error).__name__}: {error}"[:200]
    if other:
        return CONVENTION, other
    if wrong:
        return ALLOWER, wrong[0]
    if only_format:
        return FORMAT, only_format[0]
    return (DIALECT, dialect) if dialect else (UNDECIDED, "")


INVALID = object()


def parse(text: bytes) -> Any:
    """The JSON value of a text, or `INVALID`: also for repeated keys and non-finite numbers."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a repeated key")
        return dict(pairs)

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(text.decode(), object_pairs_hook=members, parse_constant=refuse)
    except (ValueError, RecursionError):
        return INVALID


def is_plain(text: str, value: Any, schema: Any, whitespace: Whitespace) -> bool:
    """Whether a text is what every engine should write: see *forbidder wrong* above."""
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    spaced = json.dumps(value, ensure_ascii=False)
    if text not in ({"compact": [compact], "spaced": [spaced]}.get(whitespace, [compact, spaced])):
        return False
    orders = [part for part in _declared(schema) if len(part) > 1]
    return all(_in_order(list(found), order) for found in _objects(value) for order in orders)


def _in_order(keys: list[str], declared: list[str]) -> bool:
    """Declared keys in their order and before all others, or none of them at all."""
    places = [declared.index(key) if key in declared else len(declared) for key in keys]
    return places == sorted(places)


def _has_patterns(schema: Any) -> bool:
    if isinstance(schema, dict):
        return (
            "pattern" in schema
            or "patternProperties" in schema
            or any(map(_has_patterns, schema.values()))
        )
    return isinstance(schema, list) and any(map(_has_patterns, schema))


def _dialects_differ(value: Any) -> bool:
    """Whether a string or key has a character that the two dialects may take differently."""
    if isinstance(value, str):
        return any(c in LINE_ENDS or c in SEPARATORS or not c.isascii() for c in value)
    if isinstance(value, dict):
        return any(map(_dialects_differ, [*value, *value.values()]))
    return isinstance(value, list) and any(map(_dialects_differ, value))


def _declared(schema: Any) -> Iterator[list[str]]:
    """The keys that each part of a schema names, in the order in which to write them."""
    if isinstance(schema, dict):
        properties, required = schema.get("properties"), schema.get("required")
        if isinstance(properties, dict):
            others = required if isinstance(required, list) else []
            yield [*properties, *(key for key in others if key not in properties)]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _declared(part)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _objects(part)


def _led(peer: Peer, constraint: Any, worker: Worker, token_ids: list[int]) -> Iterator[bytes]:
    """Texts at which the engine's masks let a sequence end, after the given tokens."""
    out = np.zeros(worker.words, dtype=np.int32)
    single = {text[0]: i for i, text in enumerate(worker.tokens) if len(text) == 1}
    prefer = [single[byte] for byte in CLOSING if byte in single]
    letters = np.array([i for byte, i in single.items() if 32 <= byte < 127])
    for attempt in range(TRIES):
        source = random.Random(attempt)
        sequence = peer.start(constraint, out)
        if not all(map(sequence.accept, token_ids)):
            return
        taken = list(token_ids)
        for _ in range(LONGEST):
            sequence.fill()
            token_id = _choose(out, prefer, letters, source if attempt else None)
            if token_id is None or token_id == EOS_TOKEN_ID:
                break
            if not sequence.accept(token_id):
                break
            taken.append(token_id)
        else:
            continue
        if token_id == EOS_TOKEN_ID:
            yield b"".join(worker.tokens[i] for i in taken)


def _choose(
    mask: Mask, prefer: list[int], letters: Any, source: random.Random | None
) -> int | None:
    """A token to go on with: the end if it is allowed, a closing one, a letter, or any."""

    def allows(token_id: int) -> bool:
        return bool(mask[token_id >> 5] >> (token_id & 31) & 1)

    if allows(EOS_TOKEN_ID):
        return EOS_TOKEN_ID
    if source is None or source.random() < 0.7:
        for token_id in prefer:
            if allows(token_id):
                return token_id
    allowed = [int(token_id) for token_id in letters if allows(int(token_id))]
    if not allowed:
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        allowed = [int(token_id) for token_id in np.flatnonzero(bits)[:64]]
    if not allowed:
        return None
    return source.choice(allowed) if source else allowed[0]


if __name__ == "__main__":
    main()
