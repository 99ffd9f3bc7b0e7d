"""Lark grammars, with the extensions of llguidance's dialect, under scannerless semantics.

nodes       what a Lark text says
parser      text to nodes
loader      imports, %override, %extend, %declare, %ignore: from texts to definitions
terminals   terminals to terms, look-around included
product     rules by the state of the place where they stand
context     look-around that reaches beyond a terminal
indenter    what indentation means, as a value
indentation blocks by indentation
lower       templates, rules, ignored text: definitions to rules and terms
"""
