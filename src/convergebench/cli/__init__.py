"""The command line: parse, call one library function, print.

Data goes to stdout, progress and errors to stderr. A user's mistake is one sentence and exit code
2, never a traceback. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

import typer

from convergebench.cli import (
    analyze,
    bundle,
    compare_scores,
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
    study,
    suites,
    trial,
    verify,
    view,
    weights,
)
from convergebench.errors import ConvergeBenchError, scrub

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


class _Stopped(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, which the command-line library would swallow."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped


def main() -> None:
    """The entry point of the `convergebench` command."""
    signal.signal(signal.SIGINT, _stop)
    try:
        app()
    except ConvergeBenchError as error:
        print(f"convergebench: {scrub(str(error))}", file=sys.stderr)
        sys.exit(2)
    except _Stopped:
        told = "stopped. What was finished is saved; give the same command again."
        print(f"convergebench: {told}", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # `convergebench … | head`
        sys.stderr.close()
        sys.exit(0)
