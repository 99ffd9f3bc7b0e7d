"""What is wrong with a grammar is shown where it stands: in every notation, many kinds of errors.

In each text `¶` stands before what is at fault and is no part of it. All are asked until a
constraint is made: some errors are the front end's, some the core's, some the vocabulary's, and all
have the place.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grammaton import Grammar, Limits, Vocabulary, compile
from grammaton.errors import PlacedError

VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", b""],
    eos_token_ids=257,
    special_tokens={"<|end|>": 256},
)

EITHER = {
    "an undefined rule": 'start: "x"\na: ¶nothing\n',
    "an undefined terminal": 'start: "x"\n  | "y" ¶T\n',
    "a rule twice": 'start: "x"\n¶start: "y"\n',
    "a terminal twice": 'start: A\nA: "a"\n¶A: "b"\n',
    "a start that can't end": '// where\n¶start: "x" a\na: a "b"\n',
    "a recursive terminal": 'start: T\nT: U\nU: ¶T | "b"\n',
    "a rule in a terminal": 'start: T\nT: "a" ¶b\nb: "b"\n',
    "no such file": 'start: "x"\n¶%import nofile.X\n',
    "no such name": 'start: "x"\n%import common.¶NOPE\n',
    "no such local file": 'start: "x"\n¶%import .nofile.x\n',
    "an import twice": "%import common.INT\n%import common.¶INT\nstart: INT\n",
    "an import over a definition": 'start: INT\n¶INT: "1"\n%import common.INT\n',
    "an import as a rule": 'start: "x"\n%import common.¶INT -> y\n',
    "an open group of a regex": "start: A\nA: /a¶(/\n",
    "a bad range of a regex": "start: A\nA: /[¶z-a]/\n",
    "bad counts of a regex": "start: A\nA: /a¶{5,3}/\n",
    "nothing to repeat": "start: A\nA: /¶*a/\n",
    "a look-behind without a width": "start: A\nA: /a(?=b)¶(?<=c+)/\n",
    "a group name twice": "start: A\nA: /(?P<q>a)(?P<¶q>b)/\n",
    "a flag for bytes": "start: A\nA: ¶/a/l\n",
    "a bad regex in a rule": 'start: "x"\n  | /[¶z-a]/\n',
    "an atomic group": "start: A\n¶A: /(?>a+)b/\n",
    "a bad escape": 'start: A\nA: "¶\\xzz"\n',
    "a range that ends before its start": 'start: "x"\n  | ¶"b".."a"\n',
    "a range of two characters": 'start: "x"\n  | ¶"ab".."c"\n',
    "counts that end before their start": 'start: "x"\n  | "a"¶~5..3\n',
    "a template without arguments": 'start: "x"\nt{a}: a\nu: ¶t\n',
    "too many arguments": 'start: "x"\nt{a}: a\nu: ¶t{"a","b"}\n',
    "a parameter twice": 'start: "x"\nt{a,¶a}: a\n',
    "a choice as an argument": 'start: t{¶("a"|"b")}\nt{x}: x\n',
    "declaring nothing": 'start: "x"\n%declare¶\n',
    "extending nothing": 'start: "x"\n%extend ¶q: "b"\n',
    "overriding nothing": 'start: "x"\n%override ¶q: "b"\n',
    "no such statement": 'start: "x"\n¶%nonsense\n',
    "a priority that is no number": 'start: A\nA¶.x: "b"\n',
    "an unknown character": 'start: "x"\n  | ¶$\n',
    "an open literal": 'start: "x"\n  | ¶"b\n',
    "an open group": 'start: "x"\n  | ("b"¶\n',
    "a group that is closed twice": 'start: "x"\n  | "b"¶)\n',
    "no colon": 'start: "x"\nrule ¶"x"\n',
    "an unknown attribute": 'start: "x"\na[¶nope]: "b"\n',
    "too few tokens": 'start: "x"\na[max_tokens=¶0]: "b"\n',
    "groups too deep": "start: a\na: " + "(" * 49 + "(¶(" + '"a"' + ")" * 51 + "\n",
}  # fmt: skip

EARLEY = {
    "a circle that can't end": '// where\n¶start: "x" a\na: b\nb: a\n',
    "a budget that no text has": 'start: "x" a\n¶a[max_tokens=1]: "bbb"\n',
    "a terminal only declared": 'start: "x" Q\n%declare ¶Q\n',
    "a special token in a terminal": 'start: "x" A\nA: "b" | ¶<[3]>\n',
    "a schema in a terminal": "start: A\nA: ¶%json {}\n",
    "a template in a terminal": 'start: A\nA: ¶t{"a"}\nt{x}: x\n',
    "a bad schema": 'start: "x"\n  | ¶%json {"type": 5}\n',
    "an open schema": 'start: "x"\n  | %json {\n¶',
    "a bad %regex": 'start: "x"\n  | ¶%regex {"substring_wrds": "a"}\n',
    "a name within %lark": 'start: "x"\n  | %lark { start: ¶q }\n',
    "an unknown token": 'start: "x"\n  | ¶<|nope|>\n',
    "a token out of range": 'start: "x"\n  | ¶<[258]>\n',
    "tokens in the wrong order": 'start: "x"\n  | <[¶5-3]>\n',
    "no tokens": 'start: "x"\n  | <[¶]>\n',
    "a template that grows": 'start: t{"a"}\nt{x}: x | ¶t{t{x}}\n',
    "a terminal too deep": "start: T0\n"
    + "".join(("¶" if i == 101 else "") + f'T{i}: "a" T{i + 1}\n' for i in range(201))
    + 'T201: "z"\n',
    "ignored text that looks around": 'start: "x"\n¶%ignore /a(?!b)/\n',
}  # fmt: skip

LALR = {
    "an empty terminal": 'start: "x" A\nA: ¶""\n',
    "an empty literal": 'start: "x"\n  | ¶""\n',
    "a terminal that may be empty": 'start: "x" A\n¶A: /a*/\n',
    "a regex that may be empty": 'start: "x"\n  | ¶/b*/\n',
    "a regex in any case": 'start: "x"\n  | ¶/b*/i\n',
    "ignoring what may be empty": 'start: "x"\nA: "a"\n%ignore A\n¶%ignore /a*/\n',
    "ignoring the empty text": 'start: "x"\n%ignore ¶""\n',
    "a rule only declared": 'start: "x"\n%declare ¶b\n',
    "a start only declared": "%declare ¶start\n",
    "a bad regex with an escape": 'start: "x"\n  | /\\d¶[(a)\\s/\n',
    "a bad regex with quotes": "start: A\nA: /['\"]¶[(a)\\s/ /b/\n",
    "groups of the same name": "start: (A | B)\nA: /(?P<q>a)/\n¶B: /(?P<q>b)/\n",
    "&": 'start: "x" A\nA: ¶"a" & "b"\n',
    "~": "start: A\nA: ¶~/a/\n",
    "a special token": 'start: "x"\n  | ¶<[3]>\n',
    "a schema": 'start: "x"\n  | ¶%json {}\n',
    "attributes": 'start: "x"\n¶a[lazy]: "x"\n',
    "too many alternatives": 'start: "x"\n¶a: ' + '["a"] ' * 30 + "\n",
    "too many items": 'start: "x"\n¶a: ' + '"a" ' * 5_000 + "\n",
    "too many rules to begin with": "// where\n¶start: r0\n"
    + "".join(f'r{i}: r{i + 1} "x"\n' for i in range(4_000)) + 'r4000: "y"\n',
    "terminals that are written out": "start: T0\n"
    + "".join(("¶" if i == 40 else "") + f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60))
    + 'T60: "z"\n',
    "blank lines": 'start: "x"¶' + "\n" * 100_000 + 'a: "a"\n',
    "a regex too deep": "start: A\nA: /"
    + "(" * 100 + "¶(" + "(" * 4_900 + "a" + ")" * 5_001 + "/\n",
    "a regex with many optional parts": "start: A | B\nB: /b/\n¶A: /" + "(a|b)?" * 3_000 + "c/\n",
    "an import twice over": "%import common.INT -> N\n%import common.INT -> M\n¶start: N M\n",
    "a lexer with too many ways": "start: (A | B)+\nB: /b/\n¶A: /" + "[a-z]x+" * 400 + "/\n",
}  # fmt: skip

GBNF = {
    "an undefined rule": 'root ::= "x" |\n  ¶nothing\n',
    "a rule twice": 'root ::= "x"\n¶root ::= "y"\n',
    "a start that can't end": '# where\n¶root ::= "x" a\na ::= a "b"\n',
    "no characters": '# where\n¶root ::= "x" a\na ::= [^\\x00-\\U0010FFFF]\n',
    "a range that ends before its start": 'root ::= "x" |\n  [¶z-a]\n',
    "an open class": 'root ::= "x" |\n  ¶[a\n',
    "counts that end before their start": 'root ::= "x"\na ::= "b"¶{5,3}\n',
    "no count": 'root ::= "x"\na ::= "b"{¶,}\n',
    "a bad escape": 'root ::= "x"\na ::= "¶\\q"\n',
    "a surrogate": 'root ::= "x"\na ::= "¶\\uD800"\n',
    "a code point too far": 'root ::= "x"\na ::= "¶\\U00110000"\n',
    "an open literal": 'root ::= "x"\na ::= ¶"b\n',
    "a group that is closed twice": 'root ::= "x"\na ::= "x"¶)\n',
    "another sign": 'root ::= "x"\na ¶= "x"\n',
    "an unknown token": 'root ::= "x" |\n  ¶<|nope|>\n',
    "an unknown token by its name": 'root ::= "x" |\n  ¶<nope>\n',
    "a token out of range": 'root ::= "x" |\n  ¶<[258]>\n',
    "tokens in the wrong order": 'root ::= "x" |\n  <[¶3-1]>\n',
    "no tokens": 'root ::= "x" |\n  <[¶]>\n',
    "groups too deep": "root ::= a\na ::= " + "(" * 50 + "¶(" + '"a"' + ")" * 51 + "\n",
}  # fmt: skip

EBNF = {
    "an undefined rule": 'root ::= "x"\n  | ¶nothing\n',
    "a rule twice": 'root ::= "x"\n¶root ::= "y"\n',
    "a start that can't end": '/* where */\n¶root ::= "x" a\na ::= a "b"\n',
    "nothing left": '/* where */\n¶root ::= "x" a\na ::= "a" - "a"\n',
    "a range that ends before its start": 'root ::= "x"\n  | [¶z-a]\n',
    "codes that end before their start": 'root ::= "x"\n  | [¶#x10-#x5]\n',
    "an open class": 'root ::= "x"\n  | ¶[a\n',
    "a surrogate": 'root ::= "x"\n  | ¶#xD800\n',
    "a code point too far": 'root ::= "x"\n  | ¶#x110000\n',
    "an open literal": 'root ::= "x"\n  | ¶\'a\n',
    "an open comment": 'root ::= "x"\n  ¶/* a\n',
    "an open group": 'root ::= ("x"\n¶a ::= "b"\n',
    "a group that is closed twice": 'root ::= "x"\na ::= "x"¶)\n',
    "counts in braces": 'root ::= "x"\na ::= "b"¶{5}\n',
    "a recursive operand": 'root ::= "x"\n  | (a ¶- b)\na ::= "a"\nb ::= b "c"\n',
    "another sign": 'root ::= "x"\n\na ¶= "x"\n',
    "groups too deep": "root ::= a\na ::= " + "(" * 50 + "¶(" + '"a"' + ")" * 51 + "\n",
}  # fmt: skip


def from_lalr(text: str) -> Grammar:
    return Grammar.from_lark(text, parser="lalr")


def from_basic(text: str) -> Grammar:
    return Grammar.from_lark(text, parser="lalr", lexer="basic")


CASES = [
    (read, name, text)
    for read, cases in (
        (Grammar.from_lark, EITHER | EARLEY),
        (from_lalr, EITHER | LALR),
        (from_basic, EITHER | LALR),
        (Grammar.from_gbnf, GBNF),
        (Grammar.from_ebnf, EBNF),
    )
    for name, text in cases.items()
]


@pytest.mark.parametrize(
    ("read", "name", "text"), CASES, ids=[f"{read.__name__}: {name}" for read, name, _ in CASES]
)
def test_errors_have_the_place_of_what_is_at_fault(
    read: Callable[[str], Grammar], name: str, text: str
) -> None:
    before, after = text.split("¶")
    with pytest.raises(PlacedError) as caught:
        compile(read(before + after), VOCABULARY, limits=Limits(max_step_terms=20_000))
    error = caught.value
    assert (error.line, error.column) == (
        before.count("\n") + 1,
        len(before) - (before.rfind("\n") + 1) + 1,
    )
    assert error.line != 1 or error.column != 1
    assert "^" in str(error)
