"""Target `vocabularies`: saved vocabularies, damaged, with and without a checksum that fits.

A case is a vocabulary and edits of the file it is saved to. The file is read or refused with a
`VocabularyError`, and nothing else happens; damage under an unchanged checksum is always refused.
What is read is what was saved if nothing was changed, saves to the same vocabulary again, and gives
masks that are what `accept` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from grammaton.errors import VocabularyError
from grammaton.fuzz.target import Case, Fault, Target, without_parts
from grammaton.grammar.grammar import Grammar
from grammaton.index import Vocabulary, compile

_DIGEST_SIZE = 32
_TOKENS = ["", "a", "b", "ab", "aa", "ba", "\xc3", "\xa9", "\xc3\xa9", "x" * 9]
_NAMES = ["</s>", "<pad>", "", "é", "\ud800"]
_BYTES = [0, 1, 2, 3, 0x7F, 0x80, 0xFF]
_TRIED = 100  # ids whose acceptance is compared with the mask


class Vocabularies(Target):
    """Saved vocabularies. A case: {"tokens": [str, …], "ends": [int, …], "special": {str: int},
    "logits": int, "edits": [[offset, byte], …], "cut": int, "signed": bool}; tokens are latin-1,
    `cut` bytes are taken off the end, and `signed` then makes the checksum fit."""

    name = "vocabularies"

    def draw(self, rng: Random) -> Case:
        tokens = rng.choices(_TOKENS, k=rng.randint(1, 12))
        ids = range(len(tokens))
        edits = [[rng.randrange(200), rng.choice(_BYTES)] for _ in range(rng.randint(0, 4))]
        return {
            "tokens": tokens,
            "ends": rng.choices(ids, k=rng.randint(1, 2)),
            "special": {name: rng.choice(ids) for name in rng.sample(_NAMES, rng.randint(0, 3))},
            "logits": len(tokens) + rng.choice((0, 0, 1, 40)),
            "edits": edits,
            "cut": rng.choice((0, 0, 0, rng.randrange(200))),
            "signed": rng.random() < 0.7,
        }

    def check(self, case: Case) -> None:
        vocabulary = Vocabulary(
            [token.encode("latin-1") for token in case["tokens"]],
            eos_token_ids=case["ends"],
            special_tokens=case["special"],
            logits_size=case["logits"],
        )
        with TemporaryDirectory() as folder:
            path = Path(folder, "saved")
            vocabulary.save(path)
            whole = path.read_bytes()
            path.write_bytes(_damaged(whole, case))
            changed = path.read_bytes() != whole
            try:
                loaded = Vocabulary.load(path)
            except VocabularyError as error:
                if not changed:
                    raise Fault("a file that save wrote is refused", error) from None
                return
            if changed and not case["signed"]:
                raise Fault("damage went unnoticed")
            if not changed and _contents(loaded) != _contents(vocabulary):
                raise Fault("another vocabulary came back", loaded)
            loaded.save(path)
            if _contents(Vocabulary.load(path)) != _contents(loaded):
                raise Fault("saved again it is another vocabulary", loaded)
        _check_masks(loaded)

    def smaller(self, case: Case) -> Iterator[Case]:
        for edits in without_parts(case["edits"]):
            yield {**case, "edits": edits}
        for names in without_parts(list(case["special"])):
            yield {**case, "special": {name: case["special"][name] for name in names}}
        lowest = 1 + max(*case["ends"], *case["special"].values(), 0)
        if len(case["tokens"]) > lowest:
            yield {**case, "tokens": case["tokens"][:-1], "logits": len(case["tokens"]) - 1}
        for at, token in enumerate(case["tokens"]):
            for less in without_parts(token):
                yield {**case, "tokens": [*case["tokens"][:at], less, *case["tokens"][at + 1 :]]}


def _damaged(whole: bytes, case: Case) -> bytes:
    data = bytearray(whole)
    for offset, byte in case["edits"]:
        data[offset % len(data)] = byte
    if case["cut"]:
        del data[-case["cut"] :]
    if case["signed"]:
        body = data[:-_DIGEST_SIZE]
        return bytes(body) + hashlib.sha256(body).digest()
    return bytes(data)


def _contents(vocabulary: Vocabulary) -> Any:
    return (
        [vocabulary.token_bytes(token_id) for token_id in range(len(vocabulary))],
        vocabulary.logits_size,
        vocabulary.eos_token_ids,
        vocabulary.special_tokens,
        vocabulary.drops_leading_space,
    )


def _check_masks(vocabulary: Vocabulary) -> None:
    matcher = compile(Grammar.from_regex("[abé]*"), vocabulary).matcher()
    mask = matcher.mask()
    if len(mask) != vocabulary.mask_words:
        raise Fault("the mask has another width than the vocabulary", len(mask))
    for token_id in range(min(vocabulary.logits_size, _TRIED)):
        allowed = bool(mask[token_id // 32] >> (token_id % 32) & 1)
        if matcher.fork().accept(token_id) is not allowed:
            raise Fault("the mask is not what accept does", token_id)
