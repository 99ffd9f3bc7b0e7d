"""Texts that tell tokenizers apart, for the property that an encoded text's bytes are the text."""

from __future__ import annotations

TEXTS = [
    "Hello, world",
    " leading and trailing  ",
    "  two before, and   three between",
    "tabs\t\tand\n\n\nnewlines\r\n",
    "def f(xs):\n    return [x ** 2 for x in xs if x % 2]\n\n\tif (a!=b) { c->d; }  // §\n",
    '{"a": [1, -2.5e+10, null], "ключ": "\\u00e9"}',
    "日本語、中文、한국어 ไทย हिन्दी العربية",
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺",
    "e\u0301 and é, a\u0308\u0323, ﬁ, \u200b\ufeff\u202e",
    "<think>no</think> <tool_call> [INST] [/INST] <s></s> <unk> <0x41>",
    "<SPECIAL_20> [TOOL_CALLS] [REF] [control_99]",
    "<|im_start|>user<|im_end|><|endoftext|><|return|> <｜end｜> Ġ Ċ ##ing ⁇",
    "\x00\x01\x7f\x85\xa0\xad\u2028\U0010ffff",
    "",
    " ",
    "\n",
]

MARKED = ["<｜tool▁sep｜> ▁▁", "<｜end▁of▁sentence｜>"]
"""Texts with `▁` in them, which vocabularies that write spaces so can't tell from spaces."""
