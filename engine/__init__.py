"""The decode loop: a transformers model, a KV cache, and masks worked out beside it.

`Engine` is the door. `load` and `load_demo_model` bring a model, `Options` lists what a generation
takes, `Generation` and `Metrics` are what it gives. For transformers' own `generate` there are
`GrammatonLogitsProcessor` and `JumpForward`; `apply_mask` puts a mask on logits for any other loop.
Importing this package imports torch; `import grammaton` does not.
"""

from __future__ import annotations

from grammaton.engine.custom_generate import JumpForward
from grammaton.engine.engine import Engine, Prompt, Stream
from grammaton.engine.errors import EngineError, IncompleteOutput, InvalidOption
from grammaton.engine.masking import apply_mask, unpack_mask
from grammaton.engine.models import load, load_demo_model
from grammaton.engine.options import Options
from grammaton.engine.processor import Answer, GrammatonLogitsProcessor
from grammaton.engine.result import FinishReason, Generation, Metrics
from grammaton.engine.sampling import Sampling

__all__ = [
    "Answer",
    "Engine",
    "EngineError",
    "FinishReason",
    "Generation",
    "GrammatonLogitsProcessor",
    "IncompleteOutput",
    "InvalidOption",
    "JumpForward",
    "Metrics",
    "Options",
    "Prompt",
    "Sampling",
    "Stream",
    "apply_mask",
    "load",
    "load_demo_model",
    "unpack_mask",
]
