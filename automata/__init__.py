"""From expressions to a machine over bytes: C++, part of `grammaton._core`.

A *configuration* is what a text read so far leaves open: a set of stacks, each a term with the
frames that called it. `Recognizer` is the machine without a vocabulary, fed bytes; constraints
(`grammaton.index`) drive the same machine with whole tokens. Rows of its states are filled when
they are first reached, so a recognizer costs next to nothing to make.
"""

from __future__ import annotations

from grammaton._core import Recognizer

__all__ = ["Recognizer"]
