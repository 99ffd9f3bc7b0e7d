"""Lark grammars: acceptance against Lark's own Earley parser, corpora, imports, errors, sizes."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import lark
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grammaton import (
    Grammar,
    GrammarError,
    LimitExceeded,
    UnsatisfiableGrammar,
    UnsupportedKeyword,
    Vocabulary,
    compile,
)
from tests.grammar.notations import Expression, grammars, texts_of, to_lark

CASES = Path(__file__).parent.parent / "cases" / "lark"
LIBRARY = Path(lark.__file__).parent / "grammars"


def load(name: str) -> list[dict[str, Any]]:
    """The entries of a corpus."""
    entries: list[dict[str, Any]] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return entries


def earley(text: str) -> lark.Lark:
    """Lark's parser with the semantics that is called scannerless here."""
    return lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="resolve")


def parses(parser: lark.Lark, text: str) -> bool:
    """Whether Lark parses a text."""
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    except RuntimeError:  # it found several parses of the whole, and asks for a bug report
        return True
    return True


@given(grammars("ab", terminals=True), st.sampled_from(["", '" "', "/ +/", "/c/"]), st.data())
@settings(max_examples=50)
def test_acceptance_is_larks(rules: list[Expression], ignored: str, data: st.DataObject) -> None:
    text = to_lark(rules, ignored)
    try:
        parser = earley(text)
    except lark.exceptions.GrammarError:  # such as alternatives that are the same when written out
        assume(False)
    try:
        grammar = Grammar.from_lark(text, max_ignored=None)
        grammar.accepts("")
    except UnsatisfiableGrammar:
        assert not any(parses(parser, each) for each in ("", "a", "b", "ab", "ba"))
        return
    between = " " if " " in ignored else "c"
    texts = [data.draw(texts_of(rules, "ab", between)) for _ in range(3)]
    texts += data.draw(st.lists(st.text("ab c", max_size=4), max_size=3))
    for each in texts:
        assert grammar.accepts(each) == parses(parser, each), each


@pytest.mark.parametrize("case", load("texts.json"), ids=lambda case: case["about"])
def test_cases(case: dict[str, Any]) -> None:
    grammar = Grammar.from_lark(case["grammar"])
    parser = earley(case["grammar"]) if case.get("lark", True) else None
    for text in case["inside"]:
        assert grammar.accepts(text), text
        assert all(grammar.accepts_prefix(text[:n]) for n in range(len(text)))
        assert parser is None or parses(parser, text), text
    for text in case["outside"]:
        assert not grammar.accepts(text), text
        assert parser is None or not parses(parser, text), text


@pytest.mark.parametrize("case", load("errors.json"), ids=lambda case: case["grammar"][:30])
def test_errors(case: dict[str, Any]) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(case["grammar"])
    error = caught.value
    assert case["message"] in error.message
    assert error.position is not None
    end = error.position + 1 if error.end is None else error.end
    assert case["grammar"][error.position : end] == case["at"]
    assert "^" in str(error).splitlines()[-1]
    assert isinstance(error, UnsupportedKeyword) == case.get("unsupported", False)


# Lark's own grammars

TEXTS = (
    "12", "1.5e-3", ".5", "5.", "1e5", "+1", "-2.0", '"a\\"b"', '"a\\\\"', '"a"b"', "aB", "a_1",
    "_", " \t", "\n", "\r\n\n", "# c", "// c", "/* c */", "/* * / */", "/**/ */", "-- c", "", "f",
    "9",
)  # fmt: skip


def test_every_terminal_of_common_matches_what_lark_matches() -> None:
    source = (LIBRARY / "common.lark").read_text(encoding="utf-8")
    names = re.findall(r"^([A-Z][A-Z_]*) *:", source, re.MULTILINE)
    assert len(names) > 20
    start = "start: " + " | ".join(names) + "\n"
    compiled = lark.Lark(source + start, parser="lalr", lexer="basic", keep_all_tokens=True)
    patterns = {each.name: re.compile(each.pattern.to_regexp()) for each in compiled.terminals}
    for name in names:
        grammar = Grammar.from_lark(f"start: {name}\n%import common.{name}\n")
        for text in TEXTS:
            found = patterns[name].match(text)
            assert grammar.accepts(text) == (found is not None and found[0] == text), (name, text)


def mutated(texts: list[str], letters: str, count: int) -> list[str]:
    """The texts, and each with one character changed, `count` times."""
    choose = random.Random(0)
    found = list(texts)
    for text in texts:
        for _ in range(count):
            at = choose.randrange(len(text))
            found.append(text[:at] + choose.choice(["", *letters]) + text[at + 1 :])
    return found


def test_larks_grammar_of_lark() -> None:
    source = (LIBRARY / "lark.lark").read_text(encoding="utf-8")
    grammar = Grammar.from_lark(source, max_ignored=None)
    parser = earley(source)
    texts = [
        "start: a b?\n",
        'a: "x"i~1..3 -> foo\n | B [c]\nB.2: /a\\/b/imx\n',
        '%import common.INT -> X\n%ignore " "\n',
        '_x{a, b}: a "," b // c\n# comment\n',
        "%declare X y\n%override a: b\n",
        '!?a : "a".."z"',
    ]
    assert all(map(grammar.accepts, texts))
    for text in mutated(texts, 'ab:|"/?*\n ()[]{}~.%->', 8):
        assert grammar.accepts(text) == parses(parser, text), text


def test_larks_grammar_of_python() -> None:
    """Expressions: left recursion, and look-around at the ends of strings and numbers."""
    source = (LIBRARY / "python.lark").read_text(encoding="utf-8")
    grammar = Grammar.from_lark(source, start="eval_input")
    # Its LALR parser: the other one never comes back from some of these texts.
    parser = lark.Lark(source, start="eval_input", parser="lalr")
    texts = [
        "a+b*c",
        "f(x,*a)[1:2]",
        "lambda x:x+1",
        "'a\\'' \"b\"",
        "[x for x in y if x]",
        "{1:2,**a}",
        "a if b else c",
        "0_0+1.5e3j",
        "not a in b",
        '"""d"""',
        "rb'x'",
    ]
    assert all(map(grammar.accepts, texts))
    for text in mutated(texts, "ab1_. \"'()[]:,=+*\\", 6):
        assert grammar.accepts(text) == parses(parser, text), text
    declared = {"_INDENT": None, "_DEDENT": None}
    program = Grammar.from_lark(source, start="file_input", declared=declared)
    assert program.accepts("import a.b as c\n\n# comment\nif a: b = 1; c\n")
    assert not program.accepts("if a:\n  b\n")


# Imports


def test_imports_from_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "words.lark").write_text(
        '%import .sub.letters (LETTER, UPPER -> U)\n%ignore "!"\n'.replace("UPPER -> U", "UPPER")
        + "word: LETTER+ suffix?\nsuffix: UPPER\nWORD: LETTER UPPER\n"
        'list{x}: x ("," x)*\n_unused: missing\n',
        encoding="utf-8",
    )
    (tmp_path / "sub" / "letters.lark").write_text(
        'LETTER: "a".."z"\nUPPER: "A".."Z"\n', encoding="utf-8"
    )
    text = "start: list{word} W\n%import words (word, list)\n%import words.WORD -> W\n"
    grammar = Grammar.from_lark(text, import_paths=[tmp_path])
    assert grammar.accepts("ab,cDeF")
    assert not grammar.accepts("ab!,ceF")
    changed = Grammar.from_lark(
        'start: word\n%import words (word, suffix)\n%override suffix: "-"\n',
        import_paths=[tmp_path],
    )
    assert changed.accepts("ab-")
    assert not changed.accepts("abC")
    (tmp_path / "loop.lark").write_text("a: b\n%import loop.b\n", encoding="utf-8")
    for broken, message in (
        ("%import words.nothing", "words.lark has no nothing"),
        ("%import loop.a", "loop.lark imports itself"),
        ("%import words._unused", "rule missing is not defined, in words.lark"),
    ):
        name = broken.split(".")[1]
        with pytest.raises(GrammarError, match=message):
            Grammar.from_lark(f"start: {name}\n{broken}\n", import_paths=[tmp_path])


def test_overriding_and_extending() -> None:
    grammar = Grammar.from_lark(
        "start: NUMBER INT\n%import common (NUMBER, INT)\n"
        '%extend NUMBER: "inf"\n%override INT: "int"\n'
    )
    assert grammar.accepts("1.5int")
    assert grammar.accepts("infint")
    assert not grammar.accepts("1.51")


# Options


def test_ignored_text_is_bounded() -> None:
    text = 'start: "a" "b"\n%ignore /[ \\n]/\n%ignore /#[a-z]*\\n/\n'
    grammar = Grammar.from_lark(text, max_ignored=5)
    assert grammar.accepts("  \n  a #x\nb     ")
    assert not grammar.accepts("a  #xy\nb")
    assert not grammar.accepts_prefix("a      ")
    assert Grammar.from_lark(text, max_ignored=0).accepts("ab")
    assert not Grammar.from_lark(text, max_ignored=0).accepts("a b")
    assert Grammar.from_lark(text, max_ignored=None).accepts("a" + " " * 1000 + "b")
    assert not Grammar.from_lark(text).accepts("a" + " " * 101 + "b")
    for wrong in (-1, "5", True):
        with pytest.raises(GrammarError, match="max_ignored must be an int from 0 on or None"):
            Grammar.from_lark(text, max_ignored=wrong)  # type: ignore[arg-type]


def test_declared_terminals() -> None:
    text = 'start: "a" (_B | C)\n%declare _B\nC: "c"\n'
    with pytest.raises(GrammarError, match="_B is only declared") as caught:
        Grammar.from_lark(text)
    assert (caught.value.line, caught.value.column) == (2, 10)
    assert Grammar.from_lark(text, declared={"_B": "b+"}).accepts("abb")
    with pytest.raises(GrammarError, match="declared has C, but the grammar declares _B"):
        Grammar.from_lark(text, declared={"C": "c"})
    without = Grammar.from_lark(text, declared={"_B": None})
    assert without.accepts("ac")
    assert not without.accepts("ab")


def test_the_start_can_be_any_rule() -> None:
    text = 'start: b\nb: "b"\nt{x}: x\nB: "c"\n'
    assert Grammar.from_lark(text, start="b").accepts("b")
    with pytest.raises(
        GrammarError, match="no rule is named c, the start; the rules are: start, b, t"
    ):
        Grammar.from_lark(text, start="c")
    for start in ("t", "B"):
        with pytest.raises(GrammarError, match="the start must be a rule without parameters"):
            Grammar.from_lark(text, start=start)


# Extensions of llguidance's dialect


def test_schemas_inside_a_grammar() -> None:
    grammar = Grammar.from_lark(
        'start: "f(" %json {"type": "array", "items": {"enum": [1, "a"]}} ")" "!"?\n%ignore " "\n'
    )
    assert grammar.accepts('f( [1, "a"] )!')
    assert not grammar.accepts("f([2])")
    with pytest.raises(GrammarError, match="not JSON: Expecting ',' delimiter"):
        Grammar.from_lark('start: %json {"a": [1}')
    with pytest.raises(GrammarError, match="at /type"):
        Grammar.from_lark('start: %json {"type": "word"}')


def test_substrings() -> None:
    words = Grammar.from_lark('start: %regex {"substring_words": "a bc, a  d_1!"}')
    for text in ("", "a", " bc,", "bc, a", "d_1!", "a bc, a  d_1!"):
        assert words.accepts(text), text
    for text in ("b", "bc a", "a d_1", "a a", "d"):
        assert not words.accepts(text), text
    text = "abaab" * 3
    chars = Grammar.from_lark(f'start: %regex {{"substring_chars": "{text}"}}')
    chunks = Grammar.from_lark('start: %regex {"substring_chunks": ["ab", "", "c", "ab"]}')
    choose = random.Random(1)
    for _ in range(200):
        some = "".join(choose.choices("ab", k=choose.randrange(8)))
        assert chars.accepts(some) == (some in text)
    assert all(map(chunks.accepts, ("", "ab", "abc", "cab", "abcab")))
    assert not any(map(chunks.accepts, ("a", "abab", "ca")))
    with pytest.raises(GrammarError, match="expected one of substring_chars"):
        Grammar.from_lark('start: %regex {"substring_lines": "a"}')


def test_operators_between_terminals() -> None:
    grammar = Grammar.from_lark(
        "start: NAME (KEYWORD & /.{2}/) (~KEYWORD)?\n"
        'NAME: /[a-z]+/ & ~KEYWORD\nKEYWORD: "if" | "for"\n'
    )
    assert grammar.accepts("iffif")
    assert grammar.accepts("xif?")
    assert not grammar.accepts("forfor")


# Masks


def test_masks_are_what_prefixes_say() -> None:
    """Tokens that run over several terminals, ignored text, and look-around beyond a terminal."""
    grammar = Grammar.from_lark(
        'start: (IF "(" name ")" | name ";")+\nname: NAME\nIF: /if\\b/\nNAME: /[a-z]+(?!\\w)/\n'
        "%ignore / +/\n",
        max_ignored=3,
    )
    tokens = [
        b"if",
        b"i",
        b"f",
        b"if(",
        b" ",
        b"  ",
        b"x);",
        b");",
        b");if ",
        b"; i",
        b"(",
        b")",
        b";",
    ]
    tokens += [b"a1", b"a"]
    vocabulary = Vocabulary([*tokens, b""], eos_token_ids=len(tokens))
    constraint = compile(grammar, vocabulary)
    choose = random.Random(2)
    for _ in range(20):
        matcher = constraint.matcher()
        text = b""
        for _ in range(6):
            mask = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
            allowed = [bool(mask[i]) for i in range(len(tokens))]
            assert allowed == [grammar.accepts_prefix(text + token) for token in tokens], text
            assert mask[len(tokens)] == grammar.accepts(text)
            if not any(allowed):
                break
            token = choose.choice([i for i, each in enumerate(allowed) if each])
            assert matcher.accept(token)
            text += tokens[token]


# Sizes


def test_optional_items_cost_what_they_are() -> None:
    grammar = Grammar.from_lark("start: " + " ".join(f'["o{i}"]' for i in range(2_000)))
    assert grammar.accepts("o1o5o999")
    assert not grammar.accepts("o5o1")


def test_templates_that_grow_are_errors() -> None:
    for text in (
        'start: a{"x"}\na{x}: x a{b{x}} | x\nb{x}: x x\n',
        'start: a{b, c}\na{x, y}: x a{p{x, y}, p{y, x}}\np{x, y}: x y\nb: "b"\nc: "c"\n',
    ):
        with pytest.raises(GrammarError, match="template a grows without end"):
            Grammar.from_lark(text)


def test_large_grammars() -> None:
    rules = 2_000
    many = "start: r0\n" + "".join(
        f'r{i}: "k{i}" r{(i + 1) % rules}? WORD ("a" | "b{i}" c)*\n' for i in range(rules)
    )
    grammar = Grammar.from_lark(many + 'c: "c" c | "d"\nWORD: /[a-z]+/\n%ignore " "\n')
    assert grammar.accepts("k0 k1 ab b1 cd x")
    counted = Grammar.from_lark('start: ("a" x)~100000\nx: "(" x ")" | B\nB: /b{2,50000}/')
    assert counted.accepts_prefix("a(bbb)abb")
    with pytest.raises(GrammarError, match="nested deeper than 50"):
        Grammar.from_lark("start: " + "(" * 500_000)
    with pytest.raises(GrammarError, match="nested deeper than 50"):
        Grammar.from_lark("start: A\nA: " + "~" * 500_000)
    doubling = "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(40))
    with pytest.raises(LimitExceeded, match="parts"):
        Grammar.from_lark("start: T0\n" + doubling + 'T40: "a"\n')


def test_a_grammar_within_a_grammar() -> None:
    grammar = Grammar.from_lark(r"""
start: "<" %lark {
    start: word ("," word)*   // names of its own
    word: /a+(?!b)/ | %lark { start: "(" start ")" | "x"
      %ignore "_" }
    %ignore " "
  } ">" word
word: "w"
%ignore "-"
""")
    for text in ("<a>w", "-<- a , aa>-w", "<(_(x)), a>w"):
        assert grammar.accepts(text), text
    for text in ("< a>-w_", "<w>w", "<a-,a>w", "<a_>w", "<a> w"):
        assert not grammar.accepts(text), text
