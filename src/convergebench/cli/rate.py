"""`convergebench rate create|serve|export|analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convergebench.cli import options as o
from convergebench.cli import rate_results
from convergebench.cli.output import display, show

app = typer.Typer(help="Ask people: make a rating study, serve it, export and analyse its answers.")

Study = Annotated[
    Path, typer.Argument(metavar="STUDY", help="The folder of the study.", show_default=False)
]


@app.command(
    "create",
    epilog="Examples:  convergebench rate create my-run my-study --participants 20   ·   "
    "convergebench rate create my-run my-study -n 20 --design pairs --ties --method SF2 --method "
    "classic:wiener   ·   convergebench rate create my-run my-study -n 30 --attention 2 --repeats "
    "2 --code each --base-url https://ratings.example.org",
)
def create(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN… STUDY",
            help="One or more run directories, and last the folder to make.",
            show_default=False,
        ),
    ],
    participants: Annotated[
        int,
        typer.Option(
            "--participants", "-n", help="How many links to make; none are added later.", min=1
        ),
    ],
    design: Annotated[
        str,
        typer.Option(
            "--design",
            "-d",
            help="absolute (all methods of an image on a page, scored), single (one picture at a "
            "time, scored), pairs (two, choose) or labels (infidelity and over-generation).",
        ),
    ] = "absolute",
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="Only this method: a label, an editor or a prompt; may be repeated.",
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option("--image", metavar="NAME", help="Only this source; may be repeated."),
    ] = None,
    cycle: o.Cycles = None,
    step: Annotated[
        int | None,
        typer.Option(
            "--step",
            help="Which frame of the chains. (default: 1 of restorations, else the last)",
            min=1,
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", help="Which repeat of the chains, from 0.", min=0)
    ] = 0,
    per_participant: Annotated[
        int | None,
        typer.Option(
            "--per-participant", help="Pages that each participant rates. (default: all)", min=1
        ),
    ] = None,
    practice: Annotated[
        int, typer.Option("--practice", help="Pages to practise on, with feedback.", min=0)
    ] = 1,
    attention: Annotated[
        int, typer.Option("--attention", help="Hidden pages whose answer is known.", min=0)
    ] = 0,
    repeats: Annotated[
        int, typer.Option("--repeats", help="Pages that come a second time, hidden.", min=0)
    ] = 0,
    ties: Annotated[
        bool, typer.Option("--ties", help="Of pairs: allow the choice of no difference.")
    ] = False,
    show_beside: Annotated[
        str | None,
        typer.Option(
            "--show",
            help="What is shown beside: input, reference, both or none. (default: both; none for "
            "the design single)",
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="LOW:HIGH:STEP", help="The scale of scores.")
    ] = "0:5:1",
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name in tables. (default: the folder's)")
    ] = None,
    consent: Annotated[
        Path | None, typer.Option("--consent", metavar="FILE", help="Text to agree to.")
    ] = None,
    instructions: Annotated[
        Path | None, typer.Option("--instructions", metavar="FILE", help="Text to read first.")
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            metavar="ID=TEXT",
            help="Other words for a question: quality, preference, infidelity, over-generation.",
        ),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--code", help="Completion code shown at the end; `each`: one per person, in codes.csv."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the orders.", min=0)] = 0,
    base_url: Annotated[
        str, typer.Option("--base-url", help="Where participants will reach the server.")
    ] = "http://127.0.0.1:8000",
    json: o.Json = False,
) -> None:
    """Make a rating study: pictures of runs, an order for each participant, a link for each.

    What is missing is listed before anything is written. The links and the admin's secret are in
    links.csv and admin.txt of the new folder, which only you can read: keep them.
    """
    from convergebench.cli.rate_texts import read_beside, read_questions, read_scale, read_text
    from convergebench.errors import InputError
    from convergebench.ratings.creating import create as make

    if len(runs) < 2:
        raise InputError("name a run directory and the folder to make: rate create RUN STUDY")
    with display("pictures") as shown:
        result = make(
            runs[:-1],
            runs[-1],
            design,  # type: ignore[arg-type]
            participants=participants,
            methods=method,
            images=image,
            cycles=cycle,
            step=step,
            repeat=repeat,
            per_participant=per_participant,
            practice=practice,
            attention=attention,
            repeats=repeats,
            ties=ties,
            shows=read_beside(show_beside),
            scale=read_scale(scale),
            title=title,
            name=name,
            consent=read_text(consent),
            instructions=read_text(instructions),
            questions=read_questions(question or ()),
            code=code,
            seed=seed,
            base_url=base_url,
            observe=shown.update,
        )
    show(result, json)


@app.command(
    "serve",
    epilog="Examples:  convergebench rate serve my-study   ·   convergebench rate serve my-study "
    "--port 8001 --base-url https://ratings.example.org --trust-proxy",
)
def serve(
    study: Study,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", help="The port; 0 takes a free one.", min=0, max=65535)
    ] = 8000,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="Where participants reach it, through a TLS proxy."),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Listen where others can reach it, without TLS.")
    ] = False,
    trust_proxy: Annotated[
        bool,
        typer.Option("--trust-proxy", help="Take clients' addresses from X-Forwarded-For."),
    ] = False,
) -> None:
    """Serve a rating study. Stop it with Ctrl-C and start it again at any time.

    Every answer is on the disk before the next page is shown, and everybody goes on where they
    were. Needs the extra `rate`.
    """
    from convergebench.ratings.serve import serve as run

    run(
        study,
        host=host,
        port=port,
        base_url=base_url,
        public=public,
        trust_proxy=trust_proxy,
    )


app.command("export", epilog=rate_results.EXPORT_EXAMPLES)(rate_results.export)
app.command("analyze", epilog=rate_results.ANALYZE_EXAMPLES)(rate_results.analyze)
