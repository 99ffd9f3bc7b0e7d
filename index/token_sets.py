"""Which ids the tokens that a grammar mentions have in a vocabulary.

A *name* is that of a special token, or else the whole text of ordinary ones (several ids may have
one text). A *complement* is every token that there is, but for those listed and those that end a
sequence. Grammars without tokens cost nothing here; a name that is no special token's costs a look
at every token, some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from grammaton.errors import GrammarError
from grammaton.grammar.grammar import Grammar
from grammaton.index.vocabulary import Vocabulary

IdRanges = list[tuple[int, int]]
"""Inclusive ranges of token ids."""


def resolve_tokens(grammar: Grammar, vocabulary: Vocabulary) -> list[tuple[int, IdRanges]]:
    """The ids of each set of tokens in a grammar, by the number that its store gives the set.

    Raises:
        GrammarError: the vocabulary has no such token, with the place of the mention.
    """
    found: list[tuple[int, IdRanges]] = []
    for number, names, ids, negated in grammar.store.token_sets(grammar.start):
        try:
            ranges = [*ids, *_named(names, vocabulary)]
            for _, high in ids:
                if high >= vocabulary.logits_size:
                    raise GrammarError(
                        f"token id {high} is out of range; the vocabulary has ids 0 to "
                        f"{vocabulary.logits_size - 1}"
                    )
        except GrammarError as error:
            place = grammar.token_places.get((names, ids, negated))
            raise error if place is None else place.error(error.message) from None
        found.append((number, _others(ranges, vocabulary) if negated else ranges))
    return found


def _named(names: Iterable[str], vocabulary: Vocabulary) -> IdRanges:
    found: IdRanges = []
    for name in names:
        ids = vocabulary.token_ids(name)
        if not ids:
            from difflib import get_close_matches

            special = vocabulary.special_tokens
            known = get_close_matches(name, special, n=3) or list(special)[:8]
            raise GrammarError(
                f"this vocabulary has no token {name}; special tokens are "
                + (", ".join(known) or "none")
            )
        found += [(token_id, token_id) for token_id in ids]
    return found


def _others(ranges: IdRanges, vocabulary: Vocabulary) -> IdRanges:
    """Every token with a text or a name but those of `ranges` and the ends of sequence."""
    left_out = set(vocabulary.eos_token_ids)
    for low, high in ranges:
        left_out.update(range(low, high + 1))
    named = set(vocabulary.special_tokens.values())
    found: IdRanges = []
    for token_id in range(len(vocabulary)):
        if token_id in left_out:
            continue
        if not vocabulary.token_bytes(token_id) and token_id not in named:
            continue
        if found and found[-1][1] == token_id - 1:
            found[-1] = found[-1][0], token_id
        else:
            found.append((token_id, token_id))
    return found
