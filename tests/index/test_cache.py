"""`ConstraintCache`: keys, the bound, single flight, errors."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import grammaton.index.cache
from grammaton import Constraint, ConstraintCache, Grammar, Limits, Vocabulary, compile
from grammaton.errors import GrammarError, VocabularyError

TOKENS = [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*TOKENS, b""], eos_token_ids=256)


def digits(count: int) -> str:
    """A regex of its own for each number."""
    return rf"\d{{{count}}}"


def test_a_key_is_all_that_decides_the_constraint() -> None:
    cache = ConstraintCache()
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    other_order = {"type": "object", "properties": {"b": {}, "a": {}}}
    same_tokens = Vocabulary([*TOKENS, b""], eos_token_ids=256)

    asked: list[Callable[[], Constraint]] = [
        lambda: cache.get("json_schema", schema, VOCABULARY),
        lambda: cache.get("json_schema", other_order, VOCABULARY),
        lambda: cache.get("json_schema", schema, VOCABULARY, key_order="any"),
        lambda: cache.get("json_schema", schema, VOCABULARY, whitespace=1),
        lambda: cache.get("json_schema", schema, VOCABULARY, additional_properties=True),
        lambda: cache.get("json_schema", schema, VOCABULARY, additional_properties=False),
        lambda: cache.get("json_schema", schema, VOCABULARY, limits=Limits(max_terms=10**6)),
        lambda: cache.get("json_schema", schema, same_tokens),
        lambda: cache.get("json_schema", "{}", VOCABULARY),
        lambda: cache.get("json_schema", b"{}", VOCABULARY),
        lambda: cache.get("json_schema", {}, VOCABULARY),
        lambda: cache.get("regex", "a", VOCABULARY),
        lambda: cache.get("regex", "a", VOCABULARY, dialect="ecma"),
        lambda: cache.get("text", 'start ::= "a"', VOCABULARY),
        lambda: cache.get("choices", ["a", "b"], VOCABULARY),
        lambda: cache.get("gbnf", 'root ::= "a"', VOCABULARY),
        lambda: cache.get("ebnf", 'root ::= "a"', VOCABULARY),
    ]
    first = [ask() for ask in asked]
    assert len({id(constraint) for constraint in first}) == len(asked)
    assert [ask() for ask in asked] == first
    stats = cache.stats()
    assert stats["misses"] == stats["hits"] == stats["entries"] == len(cache) == len(asked)
    assert cache.get("json_schema", {**schema}, VOCABULARY) is first[0]


def test_equal_data_is_one_key_and_all_else_another() -> None:
    cache = ConstraintCache()

    def default(value: object) -> object:
        return {"default": value}

    values: list[object] = [
        1,
        1.0,
        True,
        None,
        "1",
        "é",
        "\ud800",
        "",
        -0.0,
        0.0,
        0,
        2**70,
        [],
        {},
        [[]],
    ]
    kept = [cache.get("json_schema", default(value), VOCABULARY) for value in values]
    assert len({id(constraint) for constraint in kept}) == len(values)

    # Equal in other objects: shared ones, ones that are interned, types that derive from Python's.
    word = "".join(["a", "b"])
    for first, other in [
        ({"enum": [word, word]}, {"enum": ["ab", "".join(["a", "b"])]}),
        ({"enum": ["a"], "title": "a"}, {"enum": ["".join(["a"])], "title": str(b"a", "ascii")}),
        (OrderedDict(enum=["a"]), OrderedDict(enum=["a"])),
    ]:
        assert cache.get("json_schema", first, VOCABULARY) is cache.get(
            "json_schema", other, VOCABULARY
        )
    # What has a buffer is not told apart by what is in that.
    with pytest.raises(GrammarError):
        cache.get("choices", np.array(["ab"]), VOCABULARY)
    cache.get("json_schema", b"{}", VOCABULARY)
    for source in (bytearray(b"{}"), memoryview(b"{}"), np.array(["a", "b"]), {"enum": {1}}):
        with pytest.raises(GrammarError):
            cache.get("json_schema", source, VOCABULARY)
    one, other = np.array([np.str_("ab")]), np.array([5e-324 * 0x62_0000_0061])
    assert one.tobytes() == other.tobytes()
    assert cache.get("json_schema", default(one[0]), VOCABULARY) is not cache.get(
        "json_schema", default(other[0]), VOCABULARY
    )
    deep: Any = {}
    for _ in range(100_000):
        deep = {"items": deep}
    with pytest.raises(GrammarError):
        cache.get("json_schema", deep, VOCABULARY)


def test_constraints_are_those_of_compile() -> None:
    constraint = ConstraintCache().get("regex", "[ab]c", VOCABULARY)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b"bc")
    assert matcher.is_complete


def test_the_least_recently_used_go_first() -> None:
    probe = ConstraintCache().get("regex", digits(1), VOCABULARY).memory_bytes
    cache = ConstraintCache(max_bytes=4 * probe)
    kept = cache.get("regex", digits(1), VOCABULARY)
    for count in range(2, 40):
        cache.get("regex", digits(count), VOCABULARY)
        assert cache.get("regex", digits(1), VOCABULARY) is kept
        assert cache.stats()["bytes"] <= cache.stats()["max_bytes"]
    stats = cache.stats()
    assert stats["evictions"] + stats["entries"] == stats["misses"] == 39
    assert stats["entries"] >= 2
    misses = stats["misses"]
    cache.get("regex", digits(39), VOCABULARY)
    assert cache.stats()["misses"] == misses
    cache.get("regex", digits(2), VOCABULARY)
    assert cache.stats()["misses"] == misses + 1


def test_constraints_that_grow_in_use_count() -> None:
    """What a kept constraint holds is counted again, without a miss too."""
    cache = ConstraintCache(max_bytes=130_000)
    constraint = cache.get("regex", "[ab]{3}(a|b|ab)*a.{9}", VOCABULARY)
    before = constraint.memory_bytes
    matcher = constraint.matcher()
    for step in range(300):
        assert matcher.accept(b"ab"[step * step % 7 % 2])
        matcher.mask()
    assert constraint.memory_bytes > max(before, 130_000)
    for _ in range(64):
        cache.get("regex", "[ab]{3}(a|b|ab)*a.{9}", VOCABULARY)
    assert cache.stats()["evictions"] >= 1
    assert cache.stats()["bytes"] <= 130_000
    assert matcher.accept(97)  # what is dropped goes on for those who have it


def test_a_constraint_above_the_bound_is_handed_out_and_not_kept() -> None:
    cache = ConstraintCache(max_bytes=1)
    assert cache.get("regex", "a", VOCABULARY).matcher().accept(97)
    assert len(cache) == 0


def test_clear() -> None:
    cache = ConstraintCache()
    first = cache.get("regex", "a", VOCABULARY)
    cache.clear()
    assert len(cache) == 0
    assert cache.get("regex", "a", VOCABULARY) is not first


def wait_for(count: int, cache: ConstraintCache) -> None:
    """Until so many requests wait for another's compile."""
    for _ in range(2000):
        if cache.stats()["waits"] >= count:
            return
        time.sleep(0.005)
    raise AssertionError("nobody waits")


def concurrently(
    monkeypatch: pytest.MonkeyPatch, outcome: Callable[[Any], Any], threads: int = 8
) -> tuple[ConstraintCache, list[Constraint | BaseException]]:
    """Threads that ask for one key; the first compile ends once all others wait for it."""
    cache = ConstraintCache()
    results: list[Constraint | BaseException] = []

    def slow(grammar: Grammar, vocabulary: Vocabulary, *, limits: Limits) -> Any:
        if cache.stats()["misses"] == 1:
            wait_for(threads - 1, cache)
            return outcome(lambda: compile(grammar, vocabulary, limits=limits))
        return compile(grammar, vocabulary, limits=limits)

    def ask() -> None:
        try:
            results.append(cache.get("regex", "abc", VOCABULARY))
        except BaseException as error:
            results.append(error)

    monkeypatch.setattr(grammaton.index.cache, "compile", slow)
    started = [threading.Thread(target=ask) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return cache, results


def test_concurrent_misses_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, results = concurrently(monkeypatch, lambda make: make())
    assert len(results) == 8
    assert isinstance(results[0], Constraint)
    assert all(result is results[0] for result in results)
    assert cache.stats()["misses"] == 1
    assert cache.stats()["waits"] == 7


def test_an_error_reaches_all_who_wait_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(make: object) -> None:
        raise GrammarError("no luck")

    cache, results = concurrently(monkeypatch, fail)
    assert [str(result) for result in results] == ["no luck"] * 8
    assert cache.stats()["errors"] == 1
    assert isinstance(cache.get("regex", "abc", VOCABULARY), Constraint)


def test_an_interrupt_is_no_answer_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(make: object) -> None:
        raise KeyboardInterrupt

    cache, results = concurrently(monkeypatch, interrupt)
    interrupted = [result for result in results if isinstance(result, KeyboardInterrupt)]
    assert len(interrupted) == 1
    assert len({id(result) for result in results if isinstance(result, Constraint)}) == 1
    assert len(results) == 8
    assert cache.stats()["misses"] == 2


def test_errors_of_front_ends_are_raised_each_time() -> None:
    cache = ConstraintCache()
    for _ in range(2):
        with pytest.raises(GrammarError, match="column"):
            cache.get("regex", "(a", VOCABULARY)
        with pytest.raises(GrammarError, match="at /type"):
            cache.get("json_schema", {"type": "text"}, VOCABULARY)
        with pytest.raises(TypeError, match="key_orders"):
            cache.get("json_schema", {}, VOCABULARY, key_orders="any")
    assert cache.stats()["errors"] == 6
    assert len(cache) == 0


def test_wrong_arguments_are_refused() -> None:
    cache = ConstraintCache()
    unknown: Any = "yaml"
    with pytest.raises(GrammarError, match="no sources of kind 'yaml'"):
        cache.get(unknown, "a", VOCABULARY)
    wrong: Any = object()
    with pytest.raises(VocabularyError, match="not object"):
        cache.get("regex", "a", wrong)
    with pytest.raises(GrammarError, match="text or JSON data"):
        cache.get("choices", [Grammar.from_choices(["a"])], VOCABULARY)
    circular: list[object] = []
    circular.append(circular)
    with pytest.raises(GrammarError, match="text or JSON data"):
        cache.get("json_schema", circular, VOCABULARY)
    for bound in (0, -5, 1.5, True, None):
        with pytest.raises(GrammarError, match="max_bytes"):
            ConstraintCache(max_bytes=bound)  # type: ignore[arg-type]


def test_many_schemas_stay_within_the_bounds() -> None:
    """300 schemas of keys and lengths of their own, through a cache and a vocabulary with room for
    a few: both stay within, and what was evicted is made again as it was."""
    pairs = [bytes(pair) for pair in product(range(97, 123), repeat=2)]
    tokens = Vocabulary([b"", *TOKENS, *pairs], eos_token_ids=0).with_limits(
        Limits(frame_cache_bytes=20_000)
    )
    cache = ConstraintCache(max_bytes=2_000_000)
    schemas = [
        {
            "type": "object",
            "properties": {f"key{i}": {"type": "string", "pattern": f"^[a-f]+x{{{i + 1}}}$"}},
            "required": [f"key{i}"],
        }
        for i in range(300)
    ]

    def masks(number: int) -> list[bytes]:
        matcher = cache.get("json_schema", schemas[number], tokens).matcher()
        assert cache.stats()["bytes"] <= 2_000_000
        text = b'{"key%d": "' % number + b"ab" * 40
        taken = []
        for start in range(0, len(text), 16):
            assert matcher.accept_bytes(text[start : start + 16])
            taken.append(matcher.mask().tobytes())
        return taken

    first = [masks(number) for number in range(5)]
    for number in range(5, 300):
        masks(number)
        assert tokens.index.stats()["frame_mask_bytes"] <= 20_000
    stats = cache.stats()
    assert stats["entries"] + stats["evictions"] == stats["misses"] == 300
    assert 2 <= stats["entries"] < 30
    assert [masks(number) for number in range(5)] == first
    assert tokens.index.stats()["frame_masks_made"] > tokens.index.stats()["frame_masks"]
