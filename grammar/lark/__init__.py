"""Lark grammars, with the extensions of llguidance's dialect, under scannerless semantics.

nodes       what a Lark text says
parser      text to nodes
loader      imports, %override, %extend, %declare, %ignore: from texts to definitions
terminals   terminals to terms, look-around included
context     look-around that reaches beyond a terminal
lower       templates, rules, ignored text: definitions to rules and terms
"""
