"""What the admin page shows: who is how far, what the methods got, and how far people agree."""

from __future__ import annotations

import hmac
import math
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from convergebench.errors import ConvergeBenchError
from convergebench.ratings import export
from convergebench.ratings.storage import Answer, Answers
from convergebench.ratings.study import SPECIAL, Study

MOST_COMMENTS: Final = 50
LASTS: Final = 12 * 3600
"""Seconds that a login holds."""


def new_cookie(key: bytes) -> str:
    """A login: when it ends, and the server's signature under that."""
    return _signed(key, int(time.time()) + LASTS)


def valid_cookie(key: bytes, cookie: str | None) -> bool:
    """Whether a login is ours and has not ended."""
    end = (cookie or "").partition(".")[0]
    if not (end.isascii() and end.isdecimal() and len(end) <= 12):
        return False
    ours = hmac.compare_digest(_signed(key, int(end)).encode(), (cookie or "").encode())
    return ours and int(end) > time.time()


def _signed(key: bytes, end: int) -> str:
    return f"{end}.{hmac.digest(key, f'admin:{end}'.encode(), 'sha256').hex()}"


class Overview:
    """The state of a study; what takes long to compute is kept until another answer comes."""

    def __init__(self, study: Study, answers: Answers) -> None:
        self._study = study
        self._answers = answers
        self._lock = threading.Lock()
        self._stored: list[Answer] = []
        self._computed: dict[str, Any] = {}

    def state(self) -> dict[str, Any]:
        """All that the admin page shows."""
        with self._lock:
            # Answers are never changed, so equally many are the same.
            if not self._computed or len(self._stored) != self._answers.count():
                self._stored = self._answers.all()
                frame = export.table(self._study, self._stored)
                methods = _methods(self._study, frame)
                self._computed = {"agreement": _agreement(frame), "methods": methods}
            stored, computed = self._stored, self._computed
        study = self._study
        return {
            "study": {
                "title": study.title,
                "name": study.name,
                "design": study.design,
                "scale": study.scale.model_dump(),
            },
            "participants": self._participants(stored),
            "answers": len(stored),
            **computed,
            "comments": [
                {"participant": answer.participant, "text": answer.comment, "at": answer.at}
                for answer in reversed(stored)
                if answer.comment
            ][:MOST_COMMENTS],
            "logout": True,
        }

    def _participants(self, stored: list[Answer]) -> list[dict[str, Any]]:
        began = self._answers.consents()
        given: dict[str, list[Answer]] = {one.id: [] for one in self._study.participants}
        for answer in stored:
            given[answer.participant].append(answer)
        found = []
        for one in self._study.participants:
            mine = given[one.id]
            kinds = [one.items[answer.item].kind for answer in mine]
            checks = [a for a, kind in zip(mine, kinds, strict=True) if kind == "attention"]
            times = [answer.milliseconds / 1000 for answer in mine]
            counted = [item for item in one.items if item.kind != "practice"]
            found.append(
                {
                    "id": one.id,
                    "done": sum(kind != "practice" for kind in kinds),
                    "total": len(counted),
                    "started": began.get(one.id),
                    "last": mine[-1].at if mine else None,
                    "attention_passed": sum(bool(answer.passed) for answer in checks),
                    "attention_seen": len(checks),
                    "median_seconds": statistics.median(times) if times else None,
                    "finished": len(mine) == len(one.items),
                }
            )
        return found


def _agreement(frame: Any) -> dict[str, Any]:
    """How far raters agree, as the statistics have it."""
    from convergebench import opinions

    try:
        told = opinions.agreement(frame)
    except ConvergeBenchError as error:
        return {"note": str(error)}
    return dict(_flat(told))


def _flat(told: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested figures under one name each: `quality: alpha`."""
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}: ")
        else:
            yield f"{before}{name}", _plain(value)


def _plain(value: Any) -> Any:
    """A value that JSON has: no NaN, no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _methods(study: Study, frame: Any) -> list[dict[str, Any]]:
    """Each method's mean so far, with a 95 % interval over its answers."""
    import polars as pl

    kept = frame.filter(pl.col("kind") == "item", ~pl.col("method").is_in(SPECIAL))
    values: dict[tuple[str, str], list[float]] = {}
    for method, question, value in kept.select("method", "question", "value").iter_rows():
        values.setdefault((method, question), []).append(value)
    return [
        {
            "label": method.label,
            "question": question.id,
            **_mean(values.get((method.label, question.id), [])),
        }
        for method in study.methods
        for question in study.questions
    ]


def _mean(given: list[float]) -> dict[str, Any]:
    """How many there are, their mean, and its interval by the normal approximation."""
    told: dict[str, Any] = {"answers": len(given), "mean": None, "low": None, "high": None}
    if given:
        mean = told["mean"] = statistics.fmean(given)
        if len(given) > 1:
            half = 1.96 * statistics.stdev(given) / math.sqrt(len(given))
            told |= {"low": mean - half, "high": mean + half}
    return told
