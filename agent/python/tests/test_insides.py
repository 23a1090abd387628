"""What items of containers hold, seen without running any of the program's code."""

from hightide_agent import insides


class Foreign(Exception):
    __traceback__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_exceptions_keep_the_frames_they_went_through() -> None:
    error = raised(ValueError("x"))
    assert insides.keeps_frames(error)
    assert insides.keeps_frames((3, error))
    assert insides.keeps_frames(raised(Foreign()))
    assert not insides.keeps_frames(error.with_traceback(None))
    assert not insides.keeps_frames(ValueError("never raised"))
    assert not insides.keeps_frames("ValueError")
    assert not insides.keeps_frames((3, "x"))
    assert not insides.keeps_frames((bytearray(1 << 20), error)), "the rest may be what takes the memory"
