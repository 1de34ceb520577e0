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
    from convergebench.making import degrade as degrade_pictures
    from convergebench.making import load as load_pictures
    from convergebench.money.spending import spend
    from convergebench.planner import plan
    from convergebench.preparation import prepare_suite
    from convergebench.ratings.creating import create as create_ratings
    from convergebench.ratings.results import analyze as analyze_ratings
    from convergebench.ratings.results import export as export_ratings
    from convergebench.ratings.serve import serve as serve_ratings
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
    from convergebench.standing import status
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
    "analyze_ratings": "ratings.results:analyze",
    "bundle": "bundler",
    "check_suite": "suite",
    "compare_scores": "agreement",
    "create_ratings": "ratings.creating:create",
    "degrade_pictures": "making:degrade",
    "demo": "demonstration",
    "editor_names": "registry",
    "export": "dataset",
    "export_ratings": "ratings.results:export",
    "find_failures": "failures:find",
    "import_run": "importer",
    "judge_restorations": "restoration",
    "load_pictures": "making:load",
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
    "serve_ratings": "ratings.serve:serve",
    "spend": "money.spending",
    "status": "standing",
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
    "analyze_ratings",
    "bundle",
    "check_suite",
    "compare_scores",
    "create_ratings",
    "degrade_pictures",
    "demo",
    "editor_names",
    "export",
    "export_ratings",
    "find_failures",
    "import_run",
    "judge_restorations",
    "load_pictures",
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
    "serve_ratings",
    "spend",
    "status",
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
