"""Real grammars, written for this benchmark, each with an independent parser of the same language.

A grammar is a file here; `load_all` brings it with texts of its language and a *check*: a parser
that is not ours and must take every text that the grammar allows.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sqlite3
import warnings
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grammaton import Grammar, Indenter

FOLDER = Path(__file__).parent
Notation = Literal["lark", "lalr", "gbnf", "ebnf"]
"""`lalr`: a Lark grammar that is read as Lark's LALR parser with its contextual lexer reads it."""
NOTATIONS: tuple[Notation, ...] = ("lark", "lalr", "gbnf", "ebnf")


@dataclass(frozen=True)
class Sample:
    """A grammar of the benchmark.

    Attributes:
        name: of its file.
        notation: which reader it is for.
        source: its text.
        texts: of its language, for walks.
        check: raises when the independent parser doesn't take a text.
    """

    name: str
    notation: Notation
    source: str
    texts: tuple[str, ...]
    check: Callable[[str], object]

    def grammar(self) -> Grammar:
        """Reads it."""
        if self.notation == "lark":
            return Grammar.from_lark(self.source, indenter=INDENTERS.get(self.name))
        if self.notation == "lalr":
            return Grammar.from_lark(self.source, parser="lalr", lexer="contextual")
        if self.notation == "gbnf":
            return Grammar.from_gbnf(self.source)
        return Grammar.from_ebnf(self.source)


INDENTERS = {"python": Indenter(max_step=8)}
"""What indentation means in the grammars that have it."""


def load_all() -> list[Sample]:
    """Every grammar in this folder, by name."""
    found = []
    for notation in NOTATIONS:
        for path in FOLDER.glob(f"*.{notation}"):
            source = path.read_text(encoding="utf-8")
            found.append(Sample(path.stem, notation, source, TEXTS[path.stem], CHECKS[path.stem]))
    return sorted(found, key=lambda sample: sample.name)


def _check_arithmetic(text: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # calling a number, which Python parses all the same
        return ast.parse(text.strip(" "), mode="eval")


def _check_python(text: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # calling a string, which Python parses all the same
        return ast.parse(text.lstrip(" "))


def _check_sql(text: str) -> None:
    """SQLite's parser: it names what is wrong with the syntax before it looks for names."""
    database = sqlite3.connect(":memory:")
    try:
        database.execute("EXPLAIN " + text)
    except sqlite3.Error as error:
        message = str(error)
        if re.search("syntax error|incomplete input|unrecognized token", message):
            raise
    finally:
        database.close()


def _check_lua(text: str) -> None:
    runtime = importlib.import_module("lupa").LuaRuntime()
    result = runtime.eval("load")(text)
    if isinstance(result, tuple):
        raise SyntaxError(result[1])


def _check_lalr_c(text: str) -> object:
    """Lark itself: what it parses is what the grammar is."""
    source = (FOLDER / "lalr_c.lalr").read_text(encoding="utf-8")
    return importlib.import_module("lark").Lark(source, parser="lalr").parse(text)


def _check_regex(text: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # possible set differences in future versions of Python
        return re.compile(text)


CHECKS: dict[str, Callable[[str], object]] = {
    "arithmetic": _check_arithmetic,
    "json": json.loads,
    "lalr_c": _check_lalr_c,
    "lalr_json": json.loads,
    "lua": _check_lua,
    "python": _check_python,
    "regex": _check_regex,
    "sql": _check_sql,
    "xml": xml.etree.ElementTree.fromstring,
}

TEXTS: dict[str, tuple[str, ...]] = {
    "arithmetic": (
        "1 + 2 * (x - 3.5e-7) // 4 ** -y",
        "max(abs(-x), round(pi * 100) / 100, min(x, y, 0))%7",
        "((((((sqrt(2)))))))*-  -1",
    ),
    "json": (
        '{"name": "Ada \\u0041\\n", "tags": ["x", "é", "日本語"], "n": [1, -2.5e+10, 0]}',
        '[[[[[]]]], {"a": {"b": {"c": null}}, "d": [true, false]}]\n',
        '{\n  "id": 12345,\n  "text": "A longer text, as models write them: with commas."\n}',
    ),
    "lalr_c": (
        "/* the greatest\n   common divisor */\nint gcd(int a, int b) {\n    // as Euclid has it\n"
        "    while (b != 0) {\n        int rest = a % b;\n        a = b;\n        b = rest;\n"
        "    }\n    return a;\n}\n",
        'void main() { char* whiles = "a \\"quoted\\" text"; if (ifs(1.5) && !done) print(whiles);'
        " else if (a <= -b || (c + d) * 2 == 7) return; else { return 3; } }",
    ),
    "lalr_json": (
        '{"name": "Ada \\u0041\\n", "tags": ["x", "é", "日本語"], "n": [1, -2.5e+10, 0]}',
        '[[[[[]]]], {"a": {"b": {"c": null}}, "d": [true, false]}]\n',
    ),
    "lua": (
        "local function fib(n)\n  if n < 2 then\n    return n\n  end\n  "
        "return fib(n - 1) + fib(n - 2)\nend\nprint(fib(30))\n",
        'for key, value in pairs({a=1, ["b c"]=2, 3}) do\n'
        '  io.write(key, "=", value, "\\n")\nend\n',
        "local t = {}\nwhile #t < 10 and not done do\n  t[#t + 1] = t.x:get(#t)\nend\nreturn t\n",
    ),
    "python": (
        "import os.path\n\n\n@cache\ndef total(items, start):  # of all\n    if not items:\n"
        "        return start\n    elif len(items) == 1:\n      return items[0] + start\n"
        "    for item in items:\n        start += item.size * 2\n    return start\n",
        "class Point(Base):\n  def norm(self): return (self.x * 2\n      + self.y) \n\n"
        "  limit = -1\n",
        'try:\n    data = {"a": [x for x in y if x not in z], "b": None}\nexcept KeyError as e:\n'
        "    raise e\nfinally:\n    with f(1, 2,) as g:\n        while True: pass\n",
    ),
    "regex": (
        r"^(?:[A-Za-z_]\w*|\d+(?:\.\d+)?)$",
        r"(?=.*\d)[^\s@]+@[a-z0-9.]{2,}\.(com|org|net){2,5}?",
        r"\[([^\]\\]|\\x[0-9a-z]{2})*?\]|é+",
    ),
    "sql": (
        "SELECT name, COUNT(*) AS n_orders FROM users JOIN orders ON user_id = id"
        " WHERE total > 9.99 AND name LIKE 'A%' GROUP BY name HAVING COUNT(*) > 3"
        " ORDER BY 2 DESC LIMIT 10;",
        "SELECT * FROM orders WHERE placed BETWEEN '2024-01-01' AND '2024-12-31'"
        " AND user_id IN (SELECT id FROM users WHERE age >= 18 OR name IS NULL)",
        "SELECT DISTINCT UPPER(name) || '''s' FROM users UNION ALL SELECT 'x' FROM orders;",
    ),
    "xml": (
        '<doc>\n<section id="intro"><title>On <i>grammars</i></title>\n'
        '<p class="lead">A text &amp; a <a href="http://a.b/c">link</a>.</p></section></doc>',
        "<doc><ul><li>one</li><li>two <b>bold<br/></b><ul><li>&#65;</li></ul></li></ul></doc>",
        "<doc><!-- a - comment --><p>日本語 and é, with ]] in it</p>\n</doc>",
    ),
}
