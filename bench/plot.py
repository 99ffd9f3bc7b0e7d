"""Tail curves as SVG: time on a logarithmic axis against the percentile, one line a series.

The horizontal axis is logarithmic in what is left above: 50, 90, 99, 99.9 % stand at equal
distances, so that the slowest thousandth gets as much room as the fastest half. A line ends where
fewer than one sample is left. Plain text of a few kB, written without any plotting library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 50
COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf")
PERCENTILES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)
POINTS = 160


def tail_curves(title: str, series: Mapping[str, Sequence[float]]) -> str:
    """Draws the distribution of each series.

    Args:
        title: above the plot.
        series: times in microseconds under the name of each line; positive, in any order.

    Returns:
        An SVG document.
    """
    filled = {name: sorted(times) for name, times in series.items() if len(times)}
    if not filled:
        raise ValueError("tail_curves needs at least one series with a sample")
    low = math.floor(math.log10(max(min(times[0] for times in filled.values()), 0.01)))
    high = math.ceil(math.log10(max(times[-1] for times in filled.values())))
    high = max(high, low + 1)
    tail = max(math.log10(len(times)) for times in filled.values())

    def across(left_above: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(left_above / max(tail, 1.0), 1.0)

    def up(microseconds: float) -> float:
        share = (math.log10(max(microseconds, 10.0**low)) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
    ]
    for exponent in range(low, high + 1):
        y = up(10.0**exponent)
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_text(LEFT - 8, y + 4, _amount(exponent), "end"))
    for percentile in PERCENTILES:
        left_above = 2.0 - math.log10(100.0 - percentile)
        if left_above <= tail:
            x = across(left_above)
            parts.append(_line(x, TOP, x, HEIGHT - BOTTOM))
            parts.append(_text(x, HEIGHT - BOTTOM + 18, f"{percentile:g}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "percentile", "middle"))
    for place, (name, times) in enumerate(filled.items()):
        colour = COLOURS[place % len(COLOURS)]
        points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in _curve(times))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        y = TOP + 14 + 20 * place
        parts.append(
            f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 8}" width="14" height="4" fill="{colour}"/>'
        )
        parts.append(_text(WIDTH - RIGHT + 32, y, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _curve(times: Sequence[float]) -> list[tuple[float, float]]:
    """Points (tens of what is left above, time) of sorted times, evenly spread, both ends in."""
    end = math.log10(len(times))
    points = []
    for i in range(POINTS):
        left_above = end * i / (POINTS - 1)
        rank = len(times) * (1.0 - 10.0**-left_above)
        points.append((left_above, times[min(len(times) - 1, math.floor(rank + 1e-9))]))
    return points


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _amount(exponent: int) -> str:
    """10**exponent microseconds in words."""
    unit, scale = ("us", 0) if exponent < 3 else ("ms", 3) if exponent < 6 else ("s", 6)
    return f"{10.0 ** (exponent - scale):g} {unit}"
