"""Sorts of undeclared keys whose properties are alike, put together.

The patterns of one object split undeclared keys into sorts, one for each set of patterns that some
key has. Mostly few of the properties differ: with minima on eight patterns there are 256 sorts and
nine kinds of values. Sorts with the same values are one language of keys, written with the fewest
patterns that are easily found: a pattern is left out of a sort where no sort with other values has
keys that are alike but for it. Sorts without keys are of no account, so of two patterns that no key
has together, each is said without the other; keys without any pattern are taken to be there, since
they are left out where objects are closed by an option.

Cost: products of the sorts with the patterns and the sorts again, at most half a million.
"""

from __future__ import annotations

from grammaton.grammar.json_schema.strings import KeySort


def put_together(sorts: list[tuple[KeySort, int]]) -> list[tuple[KeySort, int]]:
    """Sorts and what follows their keys, in fewer sorts that may have keys in common.

    Args:
        sorts: all sorts of one object that have keys, those without values too, alike but for
            the same patterns in all of them; a number for each, equal where properties are.
    """
    if len(sorts) < 2 or not (sorts[0][0].found or sorts[0][0].missing):
        return sorts
    by_value: dict[int, list[KeySort]] = {}
    for sort, value in sorts:
        by_value.setdefault(value, []).append(sort)
    result = []
    for value, alike in by_value.items():
        others = [frozenset(sort.found) for sort, other in sorts if other != value]
        if all(sort.found for sort in alike):
            others.append(frozenset())
        left = [frozenset(sort.found) for sort in alike]
        for sort in alike:
            if frozenset(sort.found) not in left:
                continue
            found, missing = set(sort.found), set(sort.missing)
            for said in (missing, found):
                for pattern in sorted(said):
                    said.remove(pattern)
                    if any(found <= other and not missing & other for other in others):
                        said.add(pattern)
            left = [keys for keys in left if not (found <= keys and not missing & keys)]
            wider = sort._replace(
                found=tuple(pattern for pattern in sort.found if pattern in found),
                missing=tuple(pattern for pattern in sort.missing if pattern in missing),
            )
            result.append((wider, value))
    return result
