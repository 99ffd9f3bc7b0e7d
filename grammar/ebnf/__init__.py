"""EBNF as the W3C writes it, in XML's specification and since (XML 1.0, section 6)."""
