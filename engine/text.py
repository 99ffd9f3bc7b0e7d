"""The text of an answer while it grows: token bytes in, whole characters out, stop strings found.

The text is the joined bytes of the tokens, never a tokenizer's `decode` of the new ids: a decoder
may drop spaces and cannot decode half a character, while the grammar speaks of exact bytes. A
*piece* is text that is final: it ends at a character boundary, and it holds back what may still
become a stop string. Bytes that can never be UTF-8 (only unconstrained text has them) become
U+FFFD; a character cut in half at the end of the answer is left out.

Cost: each byte is decoded once, and a search looks back no further than the longest stop string.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    """Decodes one answer.

    Args:
        stops: texts that end the answer and are not part of it; none may be empty.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = tuple(stops)
        self._reach = max((len(stop) for stop in self._stops), default=1) - 1
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pieces: list[str] = []
        self._held = ""
        self.stopped_by: str | None = None

    @property
    def text(self) -> str:
        """All pieces so far, joined."""
        return "".join(self._pieces)

    def push(self, data: bytes) -> str:
        """Takes a token's bytes and returns the piece they complete, often empty.

        Sets `stopped_by` when a stop string appears; the piece then ends where it began, and
        nothing may be pushed any more.
        """
        ready = self._held + self._decoder.decode(data)
        found = [(at, stop) for stop in self._stops if (at := ready.find(stop)) >= 0]
        if found:
            # Of two that start together the shorter one was complete first.
            at, self.stopped_by = min(found, key=lambda pair: (pair[0], len(pair[1])))
            return self._emit(ready[:at], held="")
        held = self._possible_start(ready)
        return self._emit(ready[: len(ready) - held], held=ready[len(ready) - held :])

    def finish(self) -> str:
        """The answer is over: the piece that was held back for a stop string."""
        return self._emit(self._held, held="")

    def _emit(self, piece: str, *, held: str) -> str:
        self._held = held
        if piece:
            self._pieces.append(piece)
        return piece

    def _possible_start(self, ready: str) -> int:
        """How many characters at the end may be the start of a stop string."""
        for length in range(min(self._reach, len(ready)), 0, -1):
            if any(stop.startswith(ready[-length:]) for stop in self._stops):
                return length
        return 0
