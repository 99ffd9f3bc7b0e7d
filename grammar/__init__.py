"""What may be said: front ends, and the one expression language that they lower to.

    grammar          `Grammar`, the immutable value that users hold and combine
    text_form        the readable text form of a grammar, printed and parsed
    regex            regular expressions of Python and ECMAScript
    json_schema      JSON Schema

The terms themselves, their derivatives and emptiness are the core's (`grammaton._core.TermStore`).
"""
