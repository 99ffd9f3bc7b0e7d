"""The keyword arguments that `generate`, `stream` and `generate_batch` share, checked once here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, get_args

from grammaton.engine.errors import InvalidOption
from grammaton.engine.sampling import Sampling
from grammaton.engine.worker import ForcedMode

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SupportsCancel(Protocol):
    """Anything like `threading.Event`."""

    def is_set(self) -> bool: ...


class Options(TypedDict, total=False):
    """Keyword arguments of a generation; every one may be left out.

    Attributes:
        max_tokens: most tokens of the answer, 512 by default. An answer that meets it ends with the
            finish reason `length`; so does one that fills the model's context.
        temperature: divides the logits; 0 is greedy, 1 the default.
        top_k: tokens kept by top-k; 0, the default, keeps all.
        top_p: mass kept by top-p (nucleus), in (0, 1]; 1 by default.
        min_p: share of the largest probability that a token needs, in [0, 1]; 0 by default.
        repetition_penalty: divides positive and multiplies negative logits of tokens that are in
            the prompt or the answer; 1 by default.
        frequency_penalty: subtracted for every occurrence in the answer; 0 by default.
        presence_penalty: subtracted once for a token of the answer; 0 by default.
        seed: the same seed, prompt and options give the same answer; a fresh one by default.
        stop: a text, or several, that end the answer and are not part of it.
        forced: how text that the grammar leaves no choice about is appended. `"canonical"`, the
            default, writes it in the tokens that the tokenizer would, in the pass of the token
            before it: much faster, and closer to what the model knows than the odd spellings that
            sampling under a mask ends up in. `"exact"` takes tokens that are the only one allowed,
            and gives the same answer as `"off"`, which samples every token.
        cancel: an object such as `threading.Event`, asked before every forward pass.
    """

    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    seed: int | None
    stop: str | Sequence[str]
    forced: ForcedMode
    cancel: SupportsCancel | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Options that were checked, with their defaults filled in."""

    sampling: Sampling
    max_tokens: int
    stops: tuple[str, ...]
    forced: ForcedMode
    cancel: SupportsCancel | None


def checked(**options: Unpack[Options]) -> Plan:
    """Fills in defaults.

    Raises:
        InvalidOption: an unknown name, or a value out of its range.
    """
    known = Options.__annotations__
    if unknown := sorted(options.keys() - known.keys()):
        raise InvalidOption(f"unknown option {unknown[0]!r}; there are {', '.join(known)}")
    given: dict[str, Any] = dict(options)
    sampling = Sampling(
        **{item.name: given[item.name] for item in fields(Sampling) if item.name in given}
    )
    max_tokens = given.get("max_tokens", 512)
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise InvalidOption(f"max_tokens must be an integer of at least 1, not {max_tokens!r}")
    forced = options.get("forced", "canonical")
    if forced not in get_args(ForcedMode):
        modes = ", ".join(map(repr, get_args(ForcedMode)))
        raise InvalidOption(f"forced must be one of {modes}, not {forced!r}")
    cancel = options.get("cancel")
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise InvalidOption(f"cancel must have is_set(), as threading.Event has, not {cancel!r}")
    return Plan(
        sampling=sampling,
        max_tokens=max_tokens,
        stops=_stops(options.get("stop", ())),
        forced=forced,
        cancel=cancel,
    )


def _stops(stop: object) -> tuple[str, ...]:
    texts = (stop,) if isinstance(stop, str) else stop
    if isinstance(texts, Iterable):
        found = tuple(texts)
        if all(isinstance(text, str) and text for text in found):
            return found
    raise InvalidOption(f"stop must be a text or several, none of them empty, not {stop!r}")
