"""Constraints as files: `save_constraint` and `load_constraint`.

What is saved is the grammar as its front end left it, so that loading reads no schema, notation or
regular expression again: that is most of what compiling takes where the front end is Python. Masks
are not saved. They are found when a state is first reached, in less time than reading them takes;
whether they are rehearsed (compile.py) is saved, so that a loaded constraint is as quick as a
compiled one.

The format, little-endian, version 2:

| part | type | what |
|---|---|---|
| magic | 8 bytes | `\\x93GRAMC\\r\\n` |
| version | u32 | 2 |
| flags | u32 | 1: rehearsed; no others |
| vocabulary | 32 bytes | `Vocabulary.fingerprint` |
| terms | bytes | the grammar, as `TermStore.save` writes it (grammar/saved_terms.hpp) |
| digest | 32 bytes | BLAKE2b of everything before |

A constraint belongs to the vocabulary that it was saved with: its language is what those tokens can
spell. The digest finds damage; someone who means harm can make a right one, and so every term is
made anew by the constructor that checks it. Nothing is unpickled or evaluated.

Cost: `bench/saved.py` measures it beside compiling. A schema of a kilobyte is a file of some three
kilobytes. The first load on a vocabulary takes its fingerprint, 10 ms for 129,000 tokens.
"""

from __future__ import annotations

import struct
from os import PathLike
from pathlib import Path

from grammaton._core import Constraint, TermStore
from grammaton.errors import GrammarError, VocabularyError
from grammaton.grammar.grammar import Grammar
from grammaton.grammar.lalr_grammar import LalrGrammar
from grammaton.index.compile import compile
from grammaton.index.token_texts import write_source
from grammaton.index.vocabulary import Vocabulary
from grammaton.limits import Limits

MAGIC = b"\x93GRAMC\r\n"
VERSION = 2

_HEADER = struct.Struct("<8sII32s")
_REHEARSED = 1
_DIGEST_SIZE = 32


def save_constraint(
    path: str | PathLike[str],
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    limits: Limits | None = None,
) -> Constraint:
    """Compiles a grammar and writes what `load_constraint` needs to a file.

    An existing file is replaced once the new one is complete.

    Args:
        path: where to write.
        grammar: what text is allowed.
        vocabulary: the tokens of the model that will write it.
        limits: bounds on work and memory; `Limits()` by default. They are not saved.

    Returns:
        The constraint, as `compile` makes it.

    Raises:
        GrammarError: the grammar runs on Lark's own LALR parser, which is not saved, or as
            `compile` raises it.
        VocabularyError: the file can't be written, or as `compile` raises it.
        UnsatisfiableGrammar, LimitExceeded: as `compile` raises them.
    """
    constraint = compile(grammar, vocabulary, limits=limits)
    write_source(path, pack_constraint(grammar, vocabulary), "constraint")
    return constraint


def load_constraint(
    path: str | PathLike[str], vocabulary: Vocabulary, *, limits: Limits | None = None
) -> Constraint:
    """The constraint in a file that `save_constraint` wrote.

    Args:
        path: the file.
        vocabulary: the one that it was saved with, or one of equal tokens.
        limits: bounds on work and memory; `Limits()` by default.

    Raises:
        GrammarError: the file can't be read, is of another kind or version, cut short or damaged.
        VocabularyError: it was saved with other tokens.
        LimitExceeded: the grammar needs more than `limits` allow.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise GrammarError(f"can't read the constraint: {error}") from error
    grammar = unpack_constraint(data, vocabulary, limits=limits)
    return compile(grammar, vocabulary, limits=limits)


def pack_constraint(grammar: Grammar, vocabulary: Vocabulary) -> bytes:
    """A grammar and the fingerprint of a vocabulary as the bytes of a file.

    Raises:
        GrammarError: the grammar runs on Lark's own LALR parser.
    """
    if isinstance(grammar, LalrGrammar):
        raise GrammarError(
            "a grammar on Lark's LALR parser is not saved; keep its Lark text, or read that with "
            'parser="earley"'
        )
    flags = _REHEARSED if grammar.rehearsed else 0
    header = _HEADER.pack(MAGIC, VERSION, flags, vocabulary.fingerprint)
    body = header + grammar.store.save(grammar.start)
    return body + _digest(body)


def unpack_constraint(
    data: bytes, vocabulary: Vocabulary, *, limits: Limits | None = None
) -> Grammar:
    """The grammar in the bytes of a file.

    Raises:
        GrammarError, VocabularyError, LimitExceeded: as `load_constraint` does.
    """
    if not data.startswith(MAGIC[: len(data)]) or not data:
        raise GrammarError("this is no constraint that save_constraint wrote")
    if len(data) < _HEADER.size + _DIGEST_SIZE:
        raise GrammarError("the saved constraint is cut short")
    _, version, flags, fingerprint = _HEADER.unpack_from(data)
    if version != VERSION:
        raise GrammarError(
            f"the saved constraint has version {version}; this grammaton reads version {VERSION}. "
            "Save it again from the grammar"
        )
    if _digest(memoryview(data)[:-_DIGEST_SIZE]) != data[-_DIGEST_SIZE:]:
        raise GrammarError("the saved constraint is damaged: its checksum doesn't fit")
    if flags & ~_REHEARSED:
        raise GrammarError("the saved constraint has flags that no grammaton of its version writes")
    if fingerprint != vocabulary.fingerprint:
        raise VocabularyError(
            "the constraint was saved with other tokens than this vocabulary has; save it again "
            "from the grammar"
        )
    store, start = TermStore.load(data[_HEADER.size : -_DIGEST_SIZE], limits or Limits())
    return Grammar(store, start, rehearsed=bool(flags & _REHEARSED))


def _digest(body: bytes | memoryview) -> bytes:
    from hashlib import blake2b  # OpenSSL takes 4 ms to load

    return blake2b(body, digest_size=_DIGEST_SIZE).digest()
