"""One stage of `benchmarks.scale`, in a process of its own.

    python -m benchmarks.scale_stage STAGE RUN SMALL_RUN STARTED

STARTED is the monotonic clock when the process was asked for. The stage is first done on a small
run, which pays for imports and for all that is made once in a process; that is told apart, as
`start_up`. Answers with one line of JSON: seconds of the clock and of the processors, those of
worker processes included.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

METRICS = ("psnr", "ssim", "ciede2000", "noise", "sharpness")
WORKERS = 2


def plan(path: Path) -> int:
    """What `convergebench plan` does; answers with the steps done."""
    from convergebench.planner import plan

    found = plan(path)
    _require(found.calls == 0, f"{found.calls} calls are planned in a complete run")
    return found.done


def resume(path: Path) -> int:
    """What `convergebench run` does before it finds nothing to do."""
    from convergebench.runner import run

    found = run(path)
    _require(found.complete and not found.steps_made, "the run was not complete")
    return sum(found.outcomes.values())


def status(path: Path) -> int:
    """What `convergebench status` does."""
    from convergebench.standing import status

    return sum(status(path).outcomes.values())


def score(path: Path) -> int:
    """Five cheap metrics with two workers; answers with the new scores."""
    from convergebench.scorer import score

    found = score(path, METRICS, workers=WORKERS)
    _require(found.new > 0 and not found.null, f"{found.new} scores, {found.null} null")
    return found.new


def score_again(path: Path) -> int:
    """The same once more, when all is known."""
    from convergebench.scorer import score

    found = score(path, METRICS, workers=WORKERS)
    _require(found.new == 0, f"{found.new} scores were made twice")
    return found.known


def analyse(path: Path) -> int:
    """What `convergebench analyze` does; answers with the findings."""
    from convergebench.analysis import analyze

    return len(analyze(path).findings)


def report(path: Path) -> int:
    """The pages and thumbnails; answers with the findings."""
    from convergebench.reporter import report

    return len(report(path).findings.findings)


def verify(path: Path) -> int:
    """Every frame re-hashed; answers with their number."""
    from convergebench.verifier import verify

    found = verify(path)
    _require(found.sound and not found.orphaned, f"not sound: {found.defects[:1]}")
    return found.frames


STAGES: dict[str, Callable[[Path], int]] = {
    "plan": plan,
    "resume": resume,
    "status": status,
    "score": score,
    "score again": score_again,
    "analysis": analyse,
    "report, cold": report,
    "report, warm": report,
    "verify": verify,
}


def _require(good: bool, fault: str) -> None:
    if not good:
        raise SystemExit(f"benchmarks.scale: {fault}")


def _busy() -> float:
    """Processor seconds of this process and of the workers that have ended."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, both))


def main() -> None:
    """Do one stage twice, small and as asked, and tell what the second took."""
    name, path, small, started = sys.argv[1:]
    STAGES[name](Path(small))
    warm, busy = time.monotonic(), _busy()
    items = STAGES[name](Path(path))
    told = {
        "start_up": warm - float(started),
        "start_up_cpu": busy,
        "wall": time.monotonic() - warm,
        "cpu": _busy() - busy,
        "items": items,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
