"""Results files of round trips: no published value is lost, and nothing scored looks unmade."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.assembly import assemble
from convergebench.importer.found import Finds, Wishes
from tests.importer.round_trips import chain, evaluation, read, results, rounds
from tests.importer.trees import plant, said, steps_of, write_json


def tell(root: Path, *entries: dict[str, Any], **wishes: Any) -> Finds:
    """What is found in a chain of one round whose results have these rounds."""
    chain(root, "cat_01_hat_add_remove", 3)
    told = evaluation(rounds=list(entries))
    write_json(root / "results.json", results(told, max_rounds=len(entries)))
    return read(root, **wishes)


def values(finds: Finds) -> dict[tuple[int, str], tuple[float | None, str]]:
    """Value and reference of each step and metric."""
    found: dict[tuple[int, str], tuple[float | None, str]] = {
        (s.step, s.metric): (s.value, s.against) for s in finds.scores
    }
    assert len(found) == len(finds.scores) == finds.keys
    return found


def test_one_metric_in_two_groups_is_two_values(tmp_path: Path) -> None:
    entry = {"round": 1, "forward_metrics": {"psnr": 20.0}, "backward_metrics": {"psnr": 30.0}}
    finds = tell(tmp_path, entry)
    assert values(finds) == {(1, "forward-psnr"): (20.0, "none"), (2, "psnr"): (30.0, "home")}
    assert said(finds, "belong to the forward edit: forward_metrics.psnr is forward-psnr.")


def test_groups_are_told_apart_alike_in_every_round(tmp_path: Path) -> None:
    first = {"round": 1, "masked": {"psnr": 20.0, "PSNR": 21.0}, "psnr": 1.0}
    first["quality"] = {"psnr": 30.0}
    finds = tell(tmp_path, first, {"round": 2, "masked": {"psnr": 22.0}})
    assert {key: value for key, (value, _) in values(finds).items()} == {
        (2, "psnr"): 30.0,
        (2, "masked-psnr"): 20.0,
        (2, "masked-PSNR"): 21.0,
        (2, "round-psnr"): 1.0,
        (4, "masked-psnr"): 22.0,
    }


def test_numbers_without_a_group_or_as_text_are_read(tmp_path: Path) -> None:
    entry = {"round": 1, "psnr": 20, "lpips": "0.1", "m": {"ssim": "0.5", "dists": "nan"}}
    assert values(tell(tmp_path, entry)) == {
        (2, "psnr"): (20.0, "home"),
        (2, "lpips"): (0.1, "home"),
        (2, "ssim"): (0.5, "home"),
        (2, "dists"): (None, "home"),
    }


def test_what_is_passed_over_is_counted_and_can_be_named(tmp_path: Path) -> None:
    entry = {"round": 1, "psnr": 20, "mine": 3, "seconds": "1.5", "at": "noon", "list": [1],
             "m": {"good": True, "deep": {"x": 1}, "word": "x", "": 4}}  # fmt: skip
    finds = tell(tmp_path, entry)
    assert set(values(finds)) == {(2, "psnr")}
    assert said(finds, "results.json: 7 values of rounds not read")
    assert said(finds, "list, m., m.deep, m.good and 3 more")
    named = tell(tmp_path, entry, metrics={"ours": "mine"}, drop=("seconds", "list", "m"))
    assert set(values(named)) == {(2, "psnr"), (2, "ours")}
    assert said(named, "4 values of rounds not read")


@pytest.mark.parametrize("text", ["", '"'])
def test_a_number_beyond_all_numbers_is_empty(tmp_path: Path, text: str) -> None:
    tell(tmp_path, {"round": 1, "m": {"psnr": "HUGE", "ssim": 0.5}})
    file = tmp_path / "results.json"
    file.write_text(file.read_text().replace('"HUGE"', f"{text}{'1' * 400}{text}"))
    finds = read(tmp_path)
    assert values(finds) == {(2, "psnr"): (None, "home"), (2, "ssim"): (0.5, "home")}
    assert finds.scores[0].note == "key m.psnr: not a number there"


def test_rounds_that_were_scored_without_a_picture_are_reported(tmp_path: Path) -> None:
    finds = tell(tmp_path, *rounds(30.0, 25.0, 20.0))
    told = [(f.step, f.outcome, f.prompt) for f in finds.frames if f.place is None]
    assert told == [
        (step, "reported", "Add a hat" if step % 2 else "Remove the hat") for step in (3, 4, 5, 6)
    ]
    assert list(finds.expected.values()) == [6]
    assert said(finds, "kept as reported: cat_01_hat_add_remove steps 3, 4, 5, 6.")
    (line,) = assemble(finds, Wishes()).lines
    assert [step.outcome for step in line.steps] == ["edited"] * 2 + ["reported"] * 4


def test_a_round_that_failed_is_not_reported(tmp_path: Path) -> None:
    finds = tell(tmp_path, *rounds(30.0), {"round": 2, "success": False, "q": {"psnr": 0.0}})
    assert [(f.step, f.outcome) for f in finds.frames if f.place is None] == [(3, "failed")]
    assert said(finds, "Values of rounds that failed are not read: cat_01_hat_add_remove.")


def test_a_chain_that_failed_did_so_after_what_was_scored(tmp_path: Path) -> None:
    chain(tmp_path, "cat_01_hat_add_remove", 3)
    told = evaluation(success=False, error="HTTP 500")
    write_json(tmp_path / "results.json", results(told, max_rounds=3))
    frames = {f.step: f.outcome for f in read(tmp_path).frames if f.place is None}
    assert frames == {3: "reported", 4: "reported", 5: "failed"}


@pytest.mark.parametrize("prompt", [["x"], 3, {"text": "x"}, False])
def test_a_prompt_that_is_no_text_is_refused(tmp_path: Path, prompt: Any) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    for way in ("forward_prompt", "backward_prompt"):
        write_json(tmp_path / "results.json", results(evaluation(**{way: prompt})))
        with pytest.raises(ImportProblem, match=f"results.json: the {way} of cat_01_hat.* no text"):
            read(tmp_path)


@pytest.mark.parametrize("content", ["", " \n", "{}"])
def test_a_cleared_results_file_is_passed_over_and_said(tmp_path: Path, content: str) -> None:
    chain(tmp_path, "cat_01_hat_add_remove")
    write_json(tmp_path / "results.json", results(evaluation()))
    (tmp_path / "results_old.json").write_text(content)
    finds = read(tmp_path)
    assert finds.unread == ["results_old.json"]
    assert said(finds, "results_old.json has no list of evaluations; it is not read.")
    assert len(finds.scores) == 6


def test_a_round_of_absurd_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportProblem, match="has a round 1000000000; expected 1, 2, …"):
        tell(tmp_path, {"round": 10**9, "psnr": 20})


def test_capital_letters_in_names_do_not_matter(tmp_path: Path) -> None:
    names = ("i0_Source.png", "I1_FORWARD.PNG", "i1_Backward.png")
    finds = read(plant(tmp_path, [f"cat_01_hat/{name}" for name in names]), editor="m")
    assert steps_of(finds) == {"m · cat_01 · hat": [0, 1, 2]}
    assert finds.unread == []
