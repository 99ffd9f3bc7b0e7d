"""Errors that only the engine raises; they derive from `GrammatonError` like all others.

A token that the mask forbids is `grammaton.errors.TokenRejected`, a vocabulary that does not fit
the model `grammaton.errors.VocabularyError`; what a matcher raises (`LimitExceeded`, say) is passed
on as it is.
"""

from __future__ import annotations

from grammaton.errors import GrammatonError


class EngineError(GrammatonError):
    """The engine cannot run or go on: the model failed, or something it needs is missing."""


class InvalidOption(EngineError, ValueError):
    """An argument of `generate`, `stream` or a loader is out of its range."""


class IncompleteOutput(EngineError):
    """`Generation.value` was asked of a text that a limit, a stop or a cancellation cut short."""
