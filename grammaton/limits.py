"""Bounds on work and memory, in one place.

Every loop in grammaton that an input could make long counts against one of these and raises
`LimitExceeded` when it runs out, so that no grammar can hang or exhaust the process that
compiles it. The defaults leave real grammars two orders of magnitude of room.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_TOKEN_IDS = 1 << 24
"""The ids a vocabulary may have, and its model's logits: 64 times today's largest (262,144)."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds that hold for one grammar and the constraints made from it.

    Attributes:
        max_terms: terms in one store (about 60 bytes each, derivatives included).
        max_step_terms: new terms that one call (`accept`, `fill_mask`, `is_empty`) may make.
        max_frames: stack frames, and links between them, in one constraint (about 50 bytes each).
        max_step_links: links between stack frames that one call (`accept`, `fill_mask`, a byte of
            `Grammar.accepts`) may follow or make, some ten million a second.
        max_walk_nodes: trie nodes one mask may visit.
        max_mask_work: what one mask may take of those that are tried when a constraint is made, in
            steps of some 40 ns: within terms of `&`, `~` and counts that look hard (four times as
            much at the beginning of each, which is kept), and, twenty times as much, near the
            start of a grammar in Lark's notation, GBNF or EBNF. Later masks may take more. With 0
            there is no bound, and no term is tried.
        mask_cache_bytes: finished masks kept by one constraint; the cache is emptied when full.
        frame_cache_bytes: frame masks kept by one vocabulary; the cache is emptied when full. A
            32nd of it more is for what masks join of them.
    """

    max_terms: int = 4_000_000
    max_step_terms: int = 100_000
    max_frames: int = 4_000_000
    max_step_links: int = 20_000_000
    max_walk_nodes: int = 20_000_000
    max_mask_work: int = 500_000
    mask_cache_bytes: int = 64 * 2**20
    frame_cache_bytes: int = 512 * 2**20
