"""ConvergeBench: does an image editor let its user converge?

Every command is one function of the same name:

    >>> import convergebench as cb
    >>> cb.plan(config={"editors": ["ref:jpeg"]})      # calls, dollars, hours, disk
    >>> cb.run("my-run", {"editors": ["ref:jpeg"]})    # walks the chains, resumes
    >>> cb.score("my-run")                             # measures what is missing
    >>> cb.report("my-run")                            # leaderboard and pages
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convergebench.agreement import compare_scores
    from convergebench.analysis import analyze
    from convergebench.bundler import bundle
    from convergebench.dataset import export
    from convergebench.demonstration import demo
    from convergebench.errors import ConvergeBenchError
    from convergebench.failures import find as find_failures
    from convergebench.frame import Frame
    from convergebench.importer import import_run
    from convergebench.money.spending import spend
    from convergebench.planner import plan
    from convergebench.preparation import prepare_suite
    from convergebench.registry import (
        editor_names,
        open_editor,
        open_metric,
        open_suite,
        plugins,
    )
    from convergebench.reporter import report
    from convergebench.restoration import judge_restorations
    from convergebench.runner import run
    from convergebench.runspec import RunSpec
    from convergebench.scorer import score
    from convergebench.selfeval import evaluate as self_evaluation
    from convergebench.store import RunStore
    from convergebench.studies import study
    from convergebench.suite import check_suite
    from convergebench.trial import try_metrics
    from convergebench.unbundler import unbundle
    from convergebench.verifier import verify

_HOME = {
    "ConvergeBenchError": "errors",
    "Frame": "frame",
    "RunSpec": "runspec",
    "RunStore": "store",
    "analyze": "analysis",
    "bundle": "bundler",
    "check_suite": "suite",
    "compare_scores": "agreement",
    "demo": "demonstration",
    "editor_names": "registry",
    "export": "dataset",
    "find_failures": "failures:find",
    "import_run": "importer",
    "judge_restorations": "restoration",
    "open_editor": "registry",
    "open_metric": "registry",
    "open_suite": "registry",
    "plan": "planner",
    "plugins": "registry",
    "prepare_suite": "preparation",
    "report": "reporter",
    "run": "runner",
    "score": "scorer",
    "self_evaluation": "selfeval:evaluate",
    "spend": "money.spending",
    "study": "studies",
    "try_metrics": "trial",
    "unbundle": "unbundler",
    "verify": "verifier",
}

__all__ = [
    "ConvergeBenchError",
    "Frame",
    "RunSpec",
    "RunStore",
    "analyze",
    "bundle",
    "check_suite",
    "compare_scores",
    "demo",
    "editor_names",
    "export",
    "find_failures",
    "import_run",
    "judge_restorations",
    "open_editor",
    "open_metric",
    "open_suite",
    "plan",
    "plugins",
    "prepare_suite",
    "report",
    "run",
    "score",
    "self_evaluation",
    "spend",
    "study",
    "try_metrics",
    "unbundle",
    "verify",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # Lazily, so that `convergebench --help` imports neither numpy nor polars.
    if name not in _HOME:
        raise AttributeError(f"module 'convergebench' has no attribute {name!r}")
    module, _, called = _HOME[name].partition(":")
    return getattr(importlib.import_module(f"convergebench.{module}"), called or name)
