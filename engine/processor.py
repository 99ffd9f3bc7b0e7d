"""`GrammatonLogitsProcessor`: constraints for `transformers.generate`, whatever mode it runs in.

    processor = GrammatonLogitsProcessor(grammar, vocabulary)
    model.generate(**inputs, logits_processor=[processor])

At every step `generate` shows a processor its rows of ids and their scores, and nothing else: not
which row came from which, nor whether a token was drawn for good. So everything is worked out from
the ids (see `grammaton.engine.rows`), the scores are never changed in place, and the answer for a
row is the same however often and in whatever order rows are shown.

Nouns, besides those of `rows`:
  scores   logits, or log probabilities in beam search: floats `(B, V)`, V often larger than the
           vocabulary.
  group    the rows of one prompt: `num_beams` or `num_return_sequences` of them.

What a row gets: the mask of its place; one padding token when its answer is over; and the same when
the answer is lost and that does no harm (see `on_rejected`).

Cost of a call, besides the masks: the ids are copied to the CPU (on a GPU this waits for the step
before, which `generate` does anyway), a few microseconds of Python a row, and one pass over the
scores. `python -m bench.processors` measures it.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import LogitsProcessor

from grammaton._core import apply_masks
from grammaton.engine.errors import InvalidOption
from grammaton.engine.forced import Spell, take_canonical
from grammaton.engine.lent_memory import LentMemory
from grammaton.engine.masking import apply_mask, bits_of, bits_of_minus_inf, mask_of
from grammaton.engine.rows import BranchingMatcher, Constraining, Ids, Rows, Track
from grammaton.errors import TokenRejected, VocabularyError
from grammaton.grammar.grammar import Grammar
from grammaton.index import Matcher, Vocabulary, fill_masks
from grammaton.index import compile as compile_grammar

Constrained: TypeAlias = "Grammar | Constraining | None"
"""What an answer must satisfy: a grammar, a compiled constraint, or nothing."""

OnRejected = Literal["auto", "raise", "drop"]

Masks: TypeAlias = "NDArray[np.int32]"
"""Rows of masks, shape `(B, W)`."""

Answered: TypeAlias = "NDArray[np.int64]"
"""The ids of one answer, shape `(N,)`."""

# The score of a dropped beam. It has to be a number, or a softmax over beams that are all dropped
# would be none; and far under the -1e9 of beams that transformers itself has no hope for, also
# after it is divided by a length.
_HOPELESS = -1e30

_LENDABLE = frozenset((torch.float32, torch.bfloat16, torch.float16, torch.float64))

# Log probabilities of a whole vocabulary in float32 add up to 1 this well.
_NORMALISED = 1e-2


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one row of `generate`'s output says after its prompt.

    Attributes:
        text: the bytes of its tokens, decoded. Half a character at the end of a cut answer is left
            out; what is no UTF-8 in the answer of a row without a constraint becomes U+FFFD.
        token_ids: its tokens, without what ended or fills the row.
        is_complete: whether it ended where the grammar lets a text end. False for an answer that
            a length limit or a stop string cut, and for the empty row that beam search returns
            when it has found fewer answers than it was asked for.
    """

    text: str
    token_ids: list[int]
    is_complete: bool


class GrammatonLogitsProcessor(LogitsProcessor):
    """Lets `generate` write nothing but texts of a grammar.

    One processor serves one call of `generate`, or several with the same prompts; `reset` readies
    it for others. Use it from one thread at a time. Constraints may be shared freely.

    Args:
        constraint: what the answers must satisfy, or a list with one for each prompt (None leaves a
            prompt's answers free). Rows that `num_beams` or `num_return_sequences` make of a
            prompt share its constraint. Grammars are compiled here.
        vocabulary: the model's tokens, with all ids that end its sequences.
        pad_token_id: what rows past their end are given; the first end-of-sequence id by default.
            It has to be `generate`'s own when rows are padded that a stop string ended early.
        prompt_length: columns of `input_ids` in front of the answers, left padding included; by
            default those of the first call. With a smaller number the answers start inside what
            `generate` is given, which must satisfy the constraint that far.
        unique_beams: `num_beams` of a beam search whose answers shall differ in text. The same text
            has many spellings in tokens, and beams tend to fill up with them. With this, a text
            belongs to the spelling that reached it first, and a beam that reaches it otherwise is
            dropped (while its prompt has another one left). When the search finds fewer texts than
            it has to return, it fills up with rows whose `sequences_scores` are -1e9; `answers`
            gives those that repeat a text as empty. Not to be combined with `renormalize_logits`,
            which takes a dropped beam for a good one.
        on_rejected: what to do about a row with a token that its mask forbids. `"raise"`, because
            something in the loop does not heed the mask. `"drop"` gives the row padding: for loops
            that try tokens before they ask. `"auto"`, the default, raises, except for beams that
            were drawn with probability zero: beam sampling draws those when fewer tokens are
            allowed than it wants, and never returns them. (They are known by their scores being
            log probabilities; other processors in front can spoil that.)

    Raises:
        InvalidOption: an argument is out of its range.
        GrammarError, UnsatisfiableGrammar, LimitExceeded: a grammar can't be compiled.
    """

    def __init__(
        self,
        constraint: Constrained | Sequence[Constrained],
        vocabulary: Vocabulary,
        *,
        pad_token_id: int | None = None,
        prompt_length: int | None = None,
        unique_beams: int | None = None,
        on_rejected: OnRejected = "auto",
    ) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise InvalidOption(
                f"the processor needs a Vocabulary, not {type(vocabulary).__name__}; "
                "Vocabulary.from_transformers(tokenizer) makes one"
            )
        if on_rejected not in get_args(OnRejected):
            modes = ", ".join(map(repr, get_args(OnRejected)))
            raise InvalidOption(f"on_rejected must be one of {modes}, not {on_rejected!r}")
        _check_number(pad_token_id, "pad_token_id", least=0, below=vocabulary.logits_size)
        _check_number(prompt_length, "prompt_length", least=0)
        _check_number(unique_beams, "unique_beams", least=1)
        each = list(constraint) if isinstance(constraint, Sequence) else [constraint]
        if not each:
            raise InvalidOption("constraint is an empty list; give one, or one for each prompt")
        self.vocabulary = vocabulary
        self._constraints = _compiled(each, vocabulary)
        self.pad_token_id = vocabulary.eos_token_ids[0] if pad_token_id is None else pad_token_id
        self._ends = frozenset(vocabulary.eos_token_ids)
        self._fillers = self._ends | {self.pad_token_id}
        self._prompt_length = prompt_length
        self._unique_beams = unique_beams
        self._on_rejected: OnRejected = on_rejected
        self._pad_row = mask_of([self.pad_token_id], vocabulary.mask_words)
        self._free_row = mask_of(range(len(vocabulary)), vocabulary.mask_words)
        self._buffer = torch.zeros((0, vocabulary.mask_words), dtype=torch.int32)
        self._words: Masks = self._buffer.numpy()
        self._memory: LentMemory | None = None
        self._rows: Rows | None = None
        self._claims: dict[tuple[int, bytes], bytes] = {}
        self._texts: dict[bytes, bytes] = {}

    def reset(self) -> None:
        """Forgets the rows, so that the next call may be about other prompts."""
        self._rows = None
        self._claims = {}
        self._texts = {}

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores with -inf where a token can't come next, a new tensor.

        Args:
            input_ids: shape `(B, L)`, prompts and what was written after them.
            scores: floats, shape `(B, V)`.

        Raises:
            InvalidOption: the rows do not go with the ones seen before, or with the constraints.
            VocabularyError: there are fewer scores than tokens.
            TokenRejected: a row holds a token that its mask forbids; it says where.
            LimitExceeded: from a matcher.
        """
        if input_ids.dim() != 2 or scores.dim() != 2 or input_ids.shape[0] != scores.shape[0]:
            raise InvalidOption(
                f"input_ids {tuple(input_ids.shape)} and scores {tuple(scores.shape)} must be "
                "(B, L) and (B, V); continuous batching packs its rows and is not supported"
            )
        if scores.shape[1] < len(self.vocabulary):
            raise VocabularyError(
                f"{scores.shape[1]} scores for a vocabulary of {len(self.vocabulary)} tokens; "
                "they do not belong together"
            )
        rows = self._followed(input_ids)
        if any(track.lost is not None for track in rows.tracks):
            self._judge_lost(rows, scores)
        buffer = self._sized_buffer(len(rows.tracks), scores.device)
        self._fill(rows.tracks)
        dropped = self._repeated(rows, scores)
        if dropped:
            self._words[dropped] = self._pad_row
        if scores.device.type == "cpu" and scores.stride(1) == 1 and scores.dtype in _LENDABLE:
            masked = self._masked(scores)
        else:
            # The buffer is free again when the ids of the next call have arrived: one stream.
            masked = apply_mask(scores, buffer.to(scores.device, non_blocking=True))
        if dropped:
            masked[dropped, self.pad_token_id] = _HOPELESS
        return masked

    def _masked(self, scores: Tensor) -> Tensor:
        """As `apply_mask`, without its questions, into memory that was used before."""
        memory = self._memory
        if memory is None or memory.shape != scores.shape or memory.dtype != scores.dtype:
            memory = self._memory = LentMemory(scores.shape, scores.dtype)
        bits, masked = memory.take()
        apply_masks(
            bits_of(scores),
            self._words,
            bits,
            excluded=bits_of_minus_inf(scores.dtype),
            threads=torch.get_num_threads(),
        )
        return masked

    def _fill(self, tracks: Sequence[Track]) -> None:
        """Writes the masks of all rows."""
        words = self._words
        matchers: list[Matcher | None] = [None] * len(tracks)
        for row, track in enumerate(tracks):
            matcher = track.matcher
            if track.ended is not None or track.lost is not None:
                words[row] = self._pad_row
            elif matcher is None:
                words[row] = self._free_row
            elif isinstance(matcher, Matcher):
                matchers[row] = matcher
            else:
                matcher.fill_mask(words, row)
        fill_masks(matchers, words, threads=torch.get_num_threads())

    def answers(self, sequences: Tensor) -> list[Answer]:
        """What the rows of `generate`'s output say, each checked once more from its start.

        Args:
            sequences: shape `(B, L)`, prompts included; B a multiple of the constraints.

        Raises:
            InvalidOption: no call has told the prompt's length, or the shape does not fit.
            TokenRejected: a row has left its language; it says where.
        """
        length = self._rows.prompt_length if self._rows is not None else self._prompt_length
        if length is None:
            raise InvalidOption("no call has told the prompts' length; give prompt_length")
        if sequences.dim() != 2 or sequences.shape[1] < length:
            raise InvalidOption(
                f"sequences {tuple(sequences.shape)} must be (B, L) with at least the {length} "
                "columns of the prompts"
            )
        ids = _on_cpu(sequences)
        rows = self._started(ids, length, beams=1)
        for row, track in enumerate(rows.tracks):
            if track.lost is not None:
                raise self._rejected(rows, row)
        found = [self._answer(ids[row, length:], track) for row, track in enumerate(rows.tracks)]
        return self._without_repeated(found) if self._unique_beams else found

    def forced_after(
        self, row: int, token_id: int, *, room: int, spell: Spell | None = None
    ) -> list[int]:
        """The tokens that must follow a token which the row's mask allows; changes nothing.

        For loops that append several tokens at once, after a call with their rows.

        Args:
            row: row of the last call.
            token_id: the token that is chosen for it.
            room: how many tokens are wanted at most.
            spell: gives canonical tokens (see `grammaton.engine.forced`); exact ones without.

        Raises:
            TokenRejected: the token is not allowed there.
        """
        rows = self._rows
        if rows is None or not rows.tracks[row].is_open:
            return []
        matcher = rows.tracks[row].matcher
        if matcher is None:
            return []
        if not matcher.accept(token_id):
            raise self._rejected(rows, row, token_id=token_id)
        taken = 1
        forced: list[int] = []
        if not matcher.is_finished and room > 0:
            if spell is not None:
                forced = take_canonical(matcher, spell, room=room)
            else:
                forced = matcher.forced_tokens()[:room]
                for token in forced:
                    matcher.accept(token)
            taken += len(forced)
            if len(forced) < room and (end := self._only_end(matcher)) is not None:
                forced = [*forced, end]
        matcher.rollback(taken)
        return forced

    def _only_end(self, matcher: BranchingMatcher) -> int | None:
        """The end of sequence, when it is the only token allowed."""
        if not matcher.is_complete:
            return None
        mask = np.zeros(self.vocabulary.mask_words, dtype=np.int32)
        matcher.fill_mask(mask)
        eos = self.vocabulary.eos_token_ids
        allowed = [i for i in eos if _has_bit(mask, i)]
        if len(allowed) != 1:
            return None
        _clear_bit(mask, allowed[0])
        return None if mask.any() else allowed[0]

    def _followed(self, input_ids: Tensor) -> Rows:
        ids = _on_cpu(input_ids)
        rows, given = self._rows, self._prompt_length
        if given is not None and ids.shape[1] < given:
            raise InvalidOption(
                f"prompt_length is {given}, but the rows have {ids.shape[1]} columns"
            )
        if rows is None:
            prompt_length = ids.shape[1] if given is None else given
            rows = self._rows = self._started(ids, prompt_length, beams=self._unique_beams or 1)
        elif not rows.follow(ids, same_prompts=given is None):
            raise InvalidOption(
                "these rows do not begin with the prompts of the rows before. A processor serves "
                "one call of generate: make another, or reset() this one. (An assistant with a "
                "tokenizer of its own can't be constrained.)"
            )
        return rows

    def _started(self, ids: Ids, prompt_length: int, *, beams: int) -> Rows:
        count, constraints = ids.shape[0], self._constraints
        group = count // len(constraints)
        if not group or count % len(constraints) or group % beams:
            needed = f" and unique_beams={beams}" if beams > 1 else ""
            raise InvalidOption(
                f"{count} rows can't be shared out among {len(constraints)} constraints{needed}; "
                "give one constraint for all prompts, or one for each"
            )

        def start(row: int) -> Track:
            constraint = constraints[row // group]
            return Track(
                None if constraint is None else constraint.matcher(),
                ends=self._ends,
                fillers=self._fillers,
                size=self.vocabulary.logits_size,
            )

        return Rows(ids, prompt_length=prompt_length, group=group, start=start)

    def _sized_buffer(self, rows: int, device: torch.device) -> Tensor:
        if self._buffer.shape[0] != rows:
            self._buffer = torch.zeros(
                (rows, self.vocabulary.mask_words),
                dtype=torch.int32,
                pin_memory=device.type == "cuda",
            )
            self._words = self._buffer.numpy()
        return self._buffer

    def _judge_lost(self, rows: Rows, scores: Tensor) -> None:
        """Raises for the first lost row that is no beam without a chance."""
        # A dropped beam has no token left to draw, so a search that lacks beams draws others.
        if self._on_rejected == "drop" or self._unique_beams is not None:
            return
        for row, track in enumerate(rows.tracks):
            if track.lost is not None and (
                self._on_rejected == "raise"
                or abs(torch.logsumexp(scores[row], dim=0).item()) > _NORMALISED
            ):
                raise self._rejected(rows, row)

    def _rejected(self, rows: Rows, row: int, *, token_id: int | None = None) -> TokenRejected:
        """What is wrong with a row: a token in it, or one that was to come next."""
        track = rows.tracks[row]
        answer = rows.ids[row, rows.prompt_length :].tolist()
        position = len(answer) if track.lost is None else track.lost
        token = answer[position] if token_id is None else token_id
        size = self.vocabulary.logits_size
        what = self.vocabulary.token_bytes(token) if 0 <= token < size else b""
        shown = f" ({what!r})" if what else ""
        before = self.vocabulary.decode(answer[: position if track.ended is None else track.ended])
        place = f"row {row}, token {position} of the answer, after {before[-40:]!r}"
        if track.ended is not None:
            reason = (
                "comes after the end; one processor serves one call of generate, and reset() "
                "readies it for another prompt"
            )
        else:
            reason = (
                "is forbidden by the mask. Something in the loop does not heed it: another logits "
                "processor that leaves nothing, padding unlike pad_token_id, or tokens that were "
                "only tried (on_rejected='drop' lets those pass)"
            )
        return TokenRejected(
            f"token {token}{shown} {reason} ({place})", row=row, position=position, token_id=token
        )

    def _repeated(self, rows: Rows, scores: Tensor) -> list[int]:
        """Beams to drop: their text was reached in another spelling before, or they are over.

        An end of sequence is offered to a text's first spelling alone, and to it once.
        """
        beams = self._unique_beams
        if beams is None:
            return []
        words = self._words
        texts: dict[bytes, bytes] = {}
        if rows.ids.shape[1] == rows.prompt_length:
            self._claims.clear()
        dropped = [row for row, track in enumerate(rows.tracks) if not track.is_open]
        for first in range(0, len(rows.tracks), beams):
            open_rows = [row for row in range(first, first + beams) if rows.tracks[row].is_open]
            self._keep_one_end(open_rows, words, scores)
            repeated: list[int] = []
            seen: set[bytes] = set()
            for row in open_rows:
                answer = rows.ids[row, rows.prompt_length :]
                spelling = answer.tobytes()
                text = texts[spelling] = self._text(answer)
                # Digests, so that long answers don't fill the memory with their beginnings.
                mine = blake2b(spelling).digest()
                owner = self._claims.setdefault((first, blake2b(text).digest()), mine)
                # At first beams are copies of one another, of which one has a chance.
                if owner != mine or spelling in seen:
                    repeated.append(row)
                seen.add(spelling)
            if len(repeated) == len(open_rows):
                for row in open_rows:
                    for token in self._ends:
                        _clear_bit(words[row], token)
                repeated = [row for row in open_rows if not words[row].any()]
            dropped += repeated
        self._texts = texts
        return dropped

    def _text(self, answer: Answered) -> bytes:
        """The text of an answer that is open, from that of the call before."""
        known = self._texts.get(answer[:-1].tobytes()) if answer.size else None
        if known is None:
            return self.vocabulary.decode(answer.tolist())
        return known + self.vocabulary.token_bytes(int(answer[-1]))

    def _keep_one_end(self, rows: list[int], words: Masks, scores: Tensor) -> None:
        """Leaves the likeliest of several ends of sequence: each would end the same text."""
        eos = self.vocabulary.eos_token_ids
        if len(eos) == 1:
            return
        values = scores[rows][:, list(eos)].tolist()
        for row, row_values in zip(rows, values, strict=True):
            best = eos[row_values.index(max(row_values))]
            for token in eos:
                if token != best:
                    _clear_bit(words[row], token)

    def _answer(self, ids: Answered, track: Track) -> Answer:
        tokens = ids[: track.ended].tolist()
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(self.vocabulary.decode(tokens))
        return Answer(text=text, token_ids=tokens, is_complete=track.is_complete)

    def _without_repeated(self, answers: list[Answer]) -> list[Answer]:
        """Empty answers for what beam search fills up with when it has nothing better."""
        rows, beams = self._rows, self._unique_beams or 1
        prompts = len(self._constraints) if rows is None else len(rows.tracks) // beams
        each = max(1, len(answers) // prompts)
        seen: set[tuple[int, str]] = set()
        kept: list[Answer] = []
        for row, answer in enumerate(answers):
            is_new = (row // each, answer.text) not in seen
            seen.add((row // each, answer.text))
            kept.append(answer if is_new else Answer(text="", token_ids=[], is_complete=False))
        return kept


def _compiled(each: list[Constrained], vocabulary: Vocabulary) -> list[Constraining | None]:
    made: dict[int, Constraining] = {}
    result: list[Constraining | None] = []
    for constraint in each:
        if isinstance(constraint, Grammar):
            if id(constraint) not in made:
                made[id(constraint)] = compile_grammar(constraint, vocabulary)
            result.append(made[id(constraint)])
        elif constraint is None or callable(getattr(constraint, "matcher", None)):
            result.append(constraint)
        else:
            raise InvalidOption(
                f"a constraint is a Grammar, Constraint or None, not {type(constraint).__name__}; "
                "Grammar.from_json_schema(schema) and Grammar.from_regex(pattern) make one"
            )
    return result


def _check_number(value: object, name: str, *, least: int, below: int | None = None) -> None:
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (below is not None and value >= below):  # type: ignore[operator]
        bound = "" if below is None else f" and below {below}"
        raise InvalidOption(f"{name} must be an integer of at least {least}{bound}, not {value!r}")


def _on_cpu(ids: Tensor) -> Ids:
    array: NDArray[Any] = (ids if ids.device.type == "cpu" else ids.cpu()).numpy()
    if array.dtype != np.int64 or array.strides[1] != array.itemsize:
        array = array.astype(np.int64, order="C")
    return array


def _has_bit(mask: NDArray[np.int32], token: int) -> bool:
    return bool(int(mask[token // 32]) >> (token % 32) & 1)


def _clear_bit(mask: NDArray[np.int32], token: int) -> None:
    mask.view(np.uint32)[token // 32] &= np.uint32(~(1 << (token % 32)) & 0xFFFFFFFF)
