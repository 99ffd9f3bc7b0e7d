"""Grammars for Lark's LALR parser, each with the characters that texts to try are made of."""

from __future__ import annotations

CHOSEN = {
    "json": (
        r"""
start: value
?value: object | array | STRING | NUMBER | "true" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"[^"\\]*"/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
%ignore " "
""",
        '[]{}:,"1.- ',
    ),
    "longest is not taken": ('start: A "b" | A A\nA: /a|ab/\n', "ab"),
    "empty": ('start: A B\nA: /a+/\nB: "ab"\n', "ab"),
    "only apart": ('start: A B\nA: /a+/\nB: "ab"\n%ignore " "\n', "ab "),
    "keyword": ('start: ("if" NAME ";" | NAME ";")+\nNAME: /[a-z]+/\n%ignore " "\n', "ifa; "),
    "keyword in any case": ('start: (NAME | "if"i "!")+\nNAME: /[a-z]+/i\n%ignore " "\n', "iF! "),
    "keyword of higher priority": ('start: (IF "!" | NAME)+\nIF.2: "if"\nNAME: /[a-z]+/\n', "if!"),
    "ignored keyword": ('start: NAME+\nNAME: /[a-z]+/\nIF: "if"\n%ignore IF\n', "ifa"),
    "keyword of what is ignored": ('start: ("if" | "a")+\nN: /[a-z]+/\n%ignore N\n', "ifa"),
    "lazy": ('start: S+\nS: /".*?"/\n', '"a'),
    "behind": ('start: (S "x")+\nS: /".*?(?<!\\\\)"/\n', '"a\\x'),
    "escapes": ("start: S+\n%import common.ESCAPED_STRING -> S\n", '"a\\'),
    "ahead": ("start: (A|B)+\nA: /a(?=b)/\nB: /b(?!b)/\n", "ab"),
    "far ahead": ("start: (A|B)+\nA: /a(?=.b..a)/s\nB: /a|b/\n", "ab"),
    "word boundary": ('start: (IF|N|W)+\nIF: /if\\b/\nN: /[a-z]+/\nW: " "\n', "if "),
    "boundary in look-ahead": ("start: (A|B)+\nA: /(?!ab\\b)[ab]+/\nB: / /\n", "ab "),
    "edges": ("start: (A|B)+\nA: /^a/ | /a$/\nB: /\\n|b/\n", "ab\n"),
    "priority": ("start: (A|B)+\nA.2: /a/\nB: /ab|b/\n", "ab"),
    "comment": ('start: ("a" | "/" )*\nC: /\\/\\*.*?\\*\\//\n%ignore C\n', "a/*"),
    "numbers": ('start: N ("." N)*\nN: /1+(\\.1+)?/\n', "1."),
    "nested": ('start: "a" start "a" | "b"\n', "ab"),
    "dangling else": ('start: s\ns: "i" s | "i" s "e" s | "x"\n', "iex"),
    "unproductive": ('start: "a" | x "b"\nx: "c" x\n', "abc"),
    "declared": ('start: "a" | X "b"\n%declare X\n', "abX"),
    "loops over nothing": ("start: A B?\nA: /(?:a?|b)*?b/\nB: /(?:|a)*(?:b|a?){0,2}a/\n", "ab"),
    "characters": ("start: (A|B)+\nA: /[é-ü]+(?=ж)/\nB: /[^a-zé]/\n", "éüж!"),
}
