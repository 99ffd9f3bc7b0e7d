"""Tail curves: what the picture must show of the numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from bench.plot import tail_curves


def points(svg: str) -> list[list[tuple[float, float]]]:
    """The corners of each line of a plot."""
    lines = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}polyline")
    return [
        [
            (float(x), float(y))
            for x, y in (pair.split(",") for pair in line.get("points", "").split())
        ]
        for line in lines
    ]


def test_a_slower_engine_runs_above_a_faster_one() -> None:
    fast = [1.0 + i / 100 for i in range(1000)]
    lines = points(tail_curves("a & b", {"fast": fast, "slow <": [10 * t for t in fast]}))
    assert len(lines) == 2
    for (x, y), (other_x, other_y) in zip(*lines, strict=True):
        assert x == other_x
        assert other_y < y  # SVG counts downwards


def test_a_line_rises_to_its_slowest_sample() -> None:
    (line,) = points(tail_curves("one", {"engine": [1.0] * 99 + [1000.0]}))
    heights = [y for _, y in line]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] < heights[0]
    assert heights[-2] == heights[0]


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match="sample"):
        tail_curves("none", {"engine": []})
