"""Growing text against the naive way: decode everything, then look."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grammaton.engine.text import TextStream

# Few characters, so that stop strings are met, of one to four bytes, so that cuts split them.
TEXT = st.text(alphabet="ab<é€😀", max_size=30)
STOPS = st.lists(st.text(alphabet="ab<é", min_size=1, max_size=4), max_size=3)


def cuts(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [*parts, data]


@given(text=TEXT, stops=STOPS, sizes=st.lists(st.integers(0, 3), max_size=60))
def test_pieces_join_to_the_text_before_the_first_stop(
    text: str, stops: list[str], sizes: list[int]
) -> None:
    stream = TextStream(stops)
    pieces = []
    for part in cuts(text.encode(), sizes):
        pieces.append(stream.push(part))
        if stream.stopped_by is not None:
            break
    else:
        pieces.append(stream.finish())
    assert "".join(pieces) == stream.text
    if stream.stopped_by is None:
        assert stream.text == text
        assert not any(stop in text for stop in stops)
    else:
        assert text.startswith(stream.text + stream.stopped_by)
        assert not any(stop in stream.text for stop in stops)


@given(text=TEXT, sizes=st.lists(st.integers(0, 3), max_size=60))
def test_nothing_is_held_back_without_stops(text: str, sizes: list[int]) -> None:
    stream = TextStream()
    sent = b""
    for part in cuts(text.encode(), sizes):
        sent += part
        stream.push(part)
        assert stream.text == sent.decode(errors="ignore")


def test_holds_back_no_more_than_a_stop_may_need() -> None:
    stream = TextStream(["\n\nUser:"])
    assert stream.push(b"hello\n") == "hello"
    assert stream.push(b"\nUs") == ""
    assert stream.push(b"a") == "\n\nUsa"
    assert stream.push(b"\n\nUser: hi") == ""
    assert stream.stopped_by == "\n\nUser:"
    assert stream.text == "hello\n\nUsa"


def test_broken_bytes() -> None:
    stream = TextStream()
    assert stream.push(b"a\xffb") == "a\ufffdb"
    assert stream.push("€".encode()[:2]) == ""
    assert stream.finish() == ""
    assert stream.text == "a\ufffdb"
