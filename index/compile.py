"""`compile`: a grammar on a vocabulary, ready to give masks.

A *constraint* is the product of the two: it holds the machine of the grammar and the masks found so
far, and is shared between requests and threads. A *matcher* is one sequence's position in it.

Cost: compiling only checks the grammar and makes its first state, in well under a millisecond for
most grammars, plus the vocabulary's trie when this is its first constraint. Everything else is
computed when a state is first reached. A grammar in Lark's notation, GBNF or EBNF is *rehearsed*
besides: what its masks are put together from is made at once, in some tens of milliseconds.
"""

from __future__ import annotations

from grammaton._core import Constraint
from grammaton.errors import GrammarError, PlacedError, VocabularyError
from grammaton.grammar.grammar import Grammar
from grammaton.grammar.lalr_grammar import LalrGrammar
from grammaton.index.token_sets import resolve_tokens
from grammaton.index.vocabulary import Vocabulary
from grammaton.limits import Limits


def compile(
    grammar: Grammar, vocabulary: Vocabulary, *, limits: Limits | None = None
) -> Constraint:
    """Prepares a grammar for generation with a vocabulary.

    Args:
        grammar: what text is allowed.
        vocabulary: the tokens of the model that will write it.
        limits: bounds on work and memory; `Limits()` by default.

    Returns:
        A constraint: `constraint.matcher()` starts a sequence.

    Raises:
        GrammarError: the grammar can't be run (a rule with parameters that can begin with itself),
            or it mentions a token that the vocabulary has not, with its place.
        VocabularyError: `vocabulary` is no `Vocabulary`.
        UnsatisfiableGrammar: no text satisfies the grammar, or none that these tokens can spell.
        LimitExceeded: the grammar needs more than `limits` allow.
    """
    if not isinstance(grammar, Grammar):
        raise GrammarError(
            f"compile needs a Grammar, not {type(grammar).__name__}; "
            "Grammar.from_json_schema or Grammar.from_regex makes one"
        )
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyError(
            f"compile needs a Vocabulary, not {type(vocabulary).__name__}; "
            "Vocabulary.from_transformers(tokenizer) makes one"
        )
    try:
        if isinstance(grammar, LalrGrammar):
            return Constraint.from_lalr(grammar.tables, vocabulary.index, limits or Limits())
        return Constraint(
            grammar.store,
            grammar.start,
            vocabulary.index,
            limits or Limits(),
            resolve_tokens(grammar, vocabulary),
            rehearse=grammar.rehearsed,
        )
    except PlacedError as error:
        raise grammar.placed(error) from None
