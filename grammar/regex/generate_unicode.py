"""Makes `unicode.json`, the table that `unicode_table` reads: `python -m
grammaton.grammar.regex.generate_unicode`, from the root of the sources.

The character data is what a JavaScript engine says (`node`, on the path): for each property that
ECMA-262 knows (tables 67 to 70), every code point is matched against it, and for case folding each
pair of characters that share an upper or lower case is matched under the flags `iu`. The names of
scripts come from the package `fonttools`, and each is tried in the engine. Needed by whoever moves
the library to another version of Unicode, by nobody else. Takes some ten seconds.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

CATEGORIES = """
    C=Other Cc=Control,cntrl Cf=Format Cn=Unassigned Co=Private_Use Cs=Surrogate L=Letter
    LC=Cased_Letter Ll=Lowercase_Letter Lm=Modifier_Letter Lo=Other_Letter Lt=Titlecase_Letter
    Lu=Uppercase_Letter M=Mark,Combining_Mark Mc=Spacing_Mark Me=Enclosing_Mark Mn=Nonspacing_Mark
    N=Number Nd=Decimal_Number,digit Nl=Letter_Number No=Other_Number P=Punctuation,punct
    Pc=Connector_Punctuation Pd=Dash_Punctuation Pe=Close_Punctuation Pf=Final_Punctuation
    Pi=Initial_Punctuation Po=Other_Punctuation Ps=Open_Punctuation S=Symbol Sc=Currency_Symbol
    Sk=Modifier_Symbol Sm=Math_Symbol So=Other_Symbol Z=Separator Zl=Line_Separator
    Zp=Paragraph_Separator Zs=Space_Separator
"""
BINARY = """
    ASCII ASCII_Hex_Digit=AHex Alphabetic=Alpha Any Assigned Bidi_Control=Bidi_C
    Bidi_Mirrored=Bidi_M Case_Ignorable=CI Cased Changes_When_Casefolded=CWCF
    Changes_When_Casemapped=CWCM Changes_When_Lowercased=CWL Changes_When_NFKC_Casefolded=CWKCF
    Changes_When_Titlecased=CWT Changes_When_Uppercased=CWU Dash Default_Ignorable_Code_Point=DI
    Deprecated=Dep Diacritic=Dia Emoji Emoji_Component=EComp Emoji_Modifier=EMod
    Emoji_Modifier_Base=EBase Emoji_Presentation=EPres Extended_Pictographic=ExtPict Extender=Ext
    Grapheme_Base=Gr_Base Grapheme_Extend=Gr_Ext Hex_Digit=Hex IDS_Binary_Operator=IDSB
    IDS_Trinary_Operator=IDST ID_Continue=IDC ID_Start=IDS Ideographic=Ideo Join_Control=Join_C
    Logical_Order_Exception=LOE Lowercase=Lower Math Noncharacter_Code_Point=NChar
    Pattern_Syntax=Pat_Syn Pattern_White_Space=Pat_WS Quotation_Mark=QMark Radical
    Regional_Indicator=RI Sentence_Terminal=STerm Soft_Dotted=SD Terminal_Punctuation=Term
    Unified_Ideograph=UIdeo Uppercase=Upper Variation_Selector=VS White_Space=space
    XID_Continue=XIDC XID_Start=XIDS
"""
_SCRIPT = r"""
const {categories, binary, scripts} = JSON.parse(require('fs').readFileSync(0));
const known = e => { try { new RegExp(`\\p{${e}}`, 'u'); return true; } catch { return false; } };
let every = '';
for (let c = 0; c < 0x110000; c++) if (c < 0xD800 || c > 0xDFFF) every += String.fromCodePoint(c);
const surrogates = Array.from({length: 0x800}, (_, i) => String.fromCharCode(0xD800 + i));
const ranges = e => {
  const one = new RegExp(`^\\p{${e}}$`, 'u'), found = [];
  for (const m of every.matchAll(new RegExp(`\\p{${e}}+`, 'gu'))) {
    const chars = [...m[0]];
    found.push([chars[0].codePointAt(0), chars.length]);
  }
  const cut = found.flatMap(([low, n]) =>  // a run may span the gap where the surrogates are
    low < 0xD800 && low + n > 0xD800
      ? [[low, 0xD800 - low], [0xE000, n - (0xD800 - low)]] : [[low, n]]);
  for (const s of surrogates) if (one.test(s)) cut.push([s.charCodeAt(0), 1]);
  cut.sort((a, b) => a[0] - b[0]);
  const out = [];
  let end = 0, previous = null;
  for (const [low, n] of cut) {
    if (previous && low === end) { previous[1] += n; }
    else { previous = [low - end, n]; out.push(previous); }
    end = low + n;
  }
  return out.flat();
};
const sets = {};
for (const name of categories) sets['gc=' + name] = ranges('gc=' + name);
for (const name of binary) sets[name] = ranges(name);
const names = scripts.filter(name => known('sc=' + name));
for (const name of names) {
  sets['sc=' + name] = ranges('sc=' + name);
  const extended = ranges('scx=' + name);
  if (`${extended}` !== `${sets['sc=' + name]}`) sets['scx=' + name] = extended;
}
const groups = new Map();
for (const c of every) for (const key of ['u' + c.toUpperCase(), 'l' + c.toLowerCase()])
  groups.set(key, (groups.get(key) ?? new Set()).add(c));
const orbits = {};
for (const group of groups.values()) {
  if (group.size < 2) continue;
  for (const a of group) for (const b of group) {
    const x = a.codePointAt(0), y = b.codePointAt(0);
    if (x < y && new RegExp(`^\\u{${x.toString(16)}}$`, 'iu').test(b)) {
      const all = new Set([...(orbits[x] ?? [x]), ...(orbits[y] ?? [y])]);
      for (const member of all) orbits[member] = all;
    }
  }
}
const folding = [...new Set(Object.values(orbits))].map(s => [...s].sort((a, b) => a - b));
folding.sort((a, b) => a[0] - b[0]);
console.log(JSON.stringify({unicode: process.versions.unicode, scripts: names, sets, folding}));
"""


def _names(table: str) -> dict[str, list[str]]:
    entries = (entry.partition("=") for entry in table.split())
    return {name: others.split(",") if others else [] for name, _, others in entries}


def generate() -> str:
    """The text of the table: one line a property, a set as gaps and lengths in turn."""
    from fontTools.unicodedata import Scripts

    categories, binary = _names(CATEGORIES), _names(BINARY)
    scripts = {short: long for short, long in Scripts.NAMES.items() if short != "Zzzz"}
    question = {
        "categories": list(categories),
        "binary": list(binary),
        "scripts": list(scripts),
    }
    answer = json.loads(
        subprocess.run(
            ["node", "-e", _SCRIPT],
            input=json.dumps(question),
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )
    aliases = {"gc=" + other: "gc=" + name for name in categories for other in categories[name]}
    aliases |= {other: name for name in binary for other in binary[name]}
    for short in answer["scripts"]:
        aliases["sc=" + scripts[short]] = "sc=" + short
    aliases |= {"sc=Qaac": "sc=Copt", "sc=Qaai": "sc=Zinh"}
    sets = [
        f'"{name}": {json.dumps(numbers, separators=(",", ":"))}'
        for name, numbers in answer["sets"].items()
    ]
    lines = [
        f'"unicode": "{answer["unicode"]}"',
        f'"aliases": {json.dumps(aliases)}',
        f'"folding": {json.dumps(answer["folding"], separators=(",", ":"))}',
        '"sets": {\n' + ",\n".join(sets) + "\n}",
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(__file__).with_name("unicode.json").write_text(generate(), encoding="ascii")
