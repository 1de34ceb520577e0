"""The command line: parse, call one library function, print.

Data goes to stdout, progress and errors to stderr. A user's mistake is one sentence and exit code
2, never a traceback. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Final

import typer

from convergebench.cli import (
    analyze,
    bundle,
    compare_scores,
    copy,
    demo,
    doctor,
    editors,
    export,
    failures,
    import_,
    leaderboard,
    metrics,
    plan,
    plugins,
    rate,
    report,
    restoration,
    run,
    score,
    self_evaluation,
    spend,
    status,
    study,
    suites,
    trial,
    verify,
    view,
    weights,
)
from convergebench.cli.watching import Stopped
from convergebench.errors import ConvergeBenchError, scrub

LATER: Final = 0.1
"""Seconds after which a stop that was ignored comes again."""

app = typer.Typer(
    name="convergebench",
    help="Does an image editor let its user converge? Walk images through repeated edits, keep "
    "every frame, measure every loss.",
    epilog="Start with: convergebench demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"convergebench {version('convergebench')}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    pass


app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.command("study", epilog=study.EXAMPLES)(study.study)
app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("spend", epilog=spend.EXAMPLES)(spend.spend)
app.command("status", epilog=status.EXAMPLES)(status.status)
app.command("import", epilog=import_.EXAMPLES)(import_.import_)
app.command("score", epilog=score.EXAMPLES)(score.score)
app.command("analyze", epilog=analyze.EXAMPLES)(analyze.analyze)
app.command("self-evaluation", epilog=self_evaluation.EXAMPLES)(self_evaluation.self_evaluation)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("restoration", epilog=restoration.EXAMPLES)(restoration.restoration)
app.command("trial", epilog=trial.EXAMPLES)(trial.trial)
app.command("view", epilog=view.EXAMPLES)(view.view)
app.command("compare-scores", epilog=compare_scores.EXAMPLES)(compare_scores.compare_scores)
app.command("failures", epilog=failures.EXAMPLES)(failures.failures)
app.command("verify", epilog=verify.EXAMPLES)(verify.verify)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("copy", epilog=copy.EXAMPLES)(copy.copy)
app.command("bundle", epilog=bundle.EXAMPLES)(bundle.bundle)
app.command("unbundle", epilog=bundle.UNBUNDLE_EXAMPLES)(bundle.unbundle)
app.command("plugins", epilog=plugins.EXAMPLES)(plugins.plugins)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.add_typer(editors.app, name="editors")
app.add_typer(leaderboard.app, name="leaderboard")
app.add_typer(metrics.app, name="metrics")
app.add_typer(rate.app, name="rate")
app.add_typer(suites.app, name="suites")
app.add_typer(weights.app, name="weights")


class _Stopping:
    """What Ctrl-C does, and SIGTERM: a scheduler's word is as good."""

    def __init__(self) -> None:
        self.asked = 0
        self._lost = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._heard)
        sys.unraisablehook = self._ignored

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        self.asked, self._lost = self.asked + (not self._lost), 0
        if self.asked > 2:  # whatever it hangs in; what is stored is stored
            os._exit(128 + number)
        raise Stopped(number)

    def _ignored(self, what: sys.UnraisableHookArgs) -> None:
        """Python ignores what is raised in a finalizer or at a fork: a stop comes again, then."""
        if not isinstance(what.exc_value, Stopped):
            sys.__unraisablehook__(what)
            return
        (self._lost,) = what.exc_value.args
        main = threading.main_thread().ident or 0
        again = threading.Timer(LATER, signal.pthread_kill, (main, self._lost))
        again.daemon = True
        again.start()

    def let_go(self) -> None:
        """One more while Python tidies up ends it without a word, and is a stop, too."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os._exit(128 + number))


def main() -> None:
    """The entry point of the `convergebench` command."""
    stopping = _Stopping()
    try:
        app()
    except BrokenPipeError:  # `convergebench … | head`
        sys.stderr.close()
        sys.exit(0)
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error, ConvergeBenchError):
            print(f"convergebench: {scrub(str(error))}", file=sys.stderr)
        elif not stopping.asked:
            raise
        if not stopping.asked:
            sys.exit(2)
        # It may come in the middle of an import or of tidying up, and leave as something else.
        told = "stopped. Whatever was stored is kept; give the same command again."
        print(f"convergebench: {told}", file=sys.stderr)
        sys.exit(130)
    finally:
        stopping.let_go()
