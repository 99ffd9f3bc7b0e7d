"""Tokens of Mistral's `tekken.json`.

The special tokens come first: id n is the n-th of them, and text of rank r has the id r plus their
number. The file may hold more texts than the model has; `default_vocab_size` counts those it has,
special tokens included. Files up to version 7 may leave the names of special tokens to the
tokenizer.

Reading 131,072 tokens costs about 0.25 s, nearly all of it `json.loads`.
"""

from __future__ import annotations

import base64
from typing import Any

from grammaton.errors import VocabularyError
from grammaton.index.token_texts import TokenTexts, token_texts
from grammaton.index.tokenizer_json import parse_json
from grammaton.limits import MAX_TOKEN_IDS

END_OF_SEQUENCE = "</s>"

# What files up to version 7 leave unsaid, in the order of ids.
_UNNAMED_VERSIONS = ("v1", "v2", "v3", "v7")
_UNNAMED = (
    *("<unk>", "<s>", END_OF_SEQUENCE, "[INST]", "[/INST]", "[AVAILABLE_TOOLS]"),
    *("[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>"),
    *("[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]"),
    *("[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)


def read_tekken(source: str | bytes) -> TokenTexts:
    """Reads the text of a `tekken.json`.

    Raises:
        VocabularyError: the text is no such file.
    """
    document = parse_json(source, "tekken.json")
    config, vocab = document.get("config"), document.get("vocab")
    if not isinstance(config, dict) or not isinstance(vocab, list):
        raise VocabularyError('a tekken.json must have a "config" and a "vocab"')
    size = _count(config, "default_vocab_size")
    specials = _count(config, "default_num_special_tokens")
    if not 0 <= size - specials <= len(vocab):
        raise VocabularyError(
            f"the tekken.json has {len(vocab)} texts for a vocabulary of {size} ids, {specials} of "
            "them special"
        )
    texts = {}
    for rank, entry in enumerate(vocab[: size - specials]):
        try:
            if entry["rank"] != rank:
                raise ValueError(f"its rank is {entry['rank']!r}")
            texts[specials + rank] = base64.b64decode(entry["token_bytes"], validate=True)
        except (LookupError, TypeError, ValueError) as error:
            raise VocabularyError(
                f"text {rank} of the tekken.json can't be read: {error}"
            ) from None
    entries = document.get("special_tokens")
    if entries is None and config.get("version") in _UNNAMED_VERSIONS:
        entries = [{"rank": i, "token_str": name} for i, name in enumerate(_UNNAMED)]
    names = _special_names(entries, specials)
    special = {name: token_id for token_id, name in names.items()}
    if len(special) < len(names):
        raise VocabularyError("two special tokens of the tekken.json have the same name")
    end = special.get(END_OF_SEQUENCE)
    return token_texts(texts, special, eos_token_ids=() if end is None else (end,))


def _count(config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    if type(value) is not int or not 0 <= value <= MAX_TOKEN_IDS:
        raise VocabularyError(f"the tekken.json has {key}={value!r}, which is no number of tokens")
    return value


def _special_names(entries: Any, count: int) -> dict[int, str]:
    """The name of each special id: the file's own, else the one Mistral's tokenizer makes up."""
    if not isinstance(entries, list):
        raise VocabularyError('the tekken.json has no list of "special_tokens"')
    names = {token_id: f"<SPECIAL_{token_id}>" for token_id in range(count)}
    for entry in entries:
        name = entry.get("token_str") if isinstance(entry, dict) else None
        token_id = entry.get("rank") if isinstance(entry, dict) else None
        if not isinstance(name, str) or type(token_id) is not int or token_id not in names:
            raise VocabularyError(
                f"a special token of the tekken.json needs a name and a rank below {count}: "
                f"{entry!r:.200}"
            )
        names[token_id] = name
    return names
