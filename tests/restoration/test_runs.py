"""The study of runs: an imported tree, published scores, our own suite, labels of people."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.errors import ConvergeBenchError, InputError, UnknownName
from convergebench.gathering import gather
from convergebench.importer import import_run
from convergebench.restoration import Restoration, judge_restorations
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.scoretable import rows_frame
from convergebench.store import RunStore
from tests.restoration.tables import cell, row, written
from tests.restoration.trees import scored_tree, write_tree
from tests.support.restorations import part_of_restoration
from tests.support.runs import write_suite


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def study(tree: Path) -> Restoration:
    return judge_restorations(tree, metrics=["psnr", "SSIM", "sharpness"])


def test_methods_are_editors_with_a_prompt_and_editors_without(study: Restoration) -> None:
    found = {m.id: (m.editor, m.prompt, m.group, m.control) for m in study.methods}
    assert found == {
        "banana · LF1": ("banana", "LF1", "LF", False),
        "banana · S1": ("banana", "S1", "S", False),
        "banana · S2": ("banana", "S2", "S", False),
        "banana · SF1": ("banana", "SF1", "SF", False),
        "specialist": ("specialist", "", "", False),
    }


def test_a_missing_output_has_failed_and_its_picture_counts_for_nobody(study: Restoration) -> None:
    (sheet,) = study.prompts
    assert (row(sheet, "S2").failed, row(sheet, "S2").expected) == (3, 21)
    assert row(sheet, "S1").failed == 0
    assert {cell(sheet, label, "psnr").n for label in ("S1", "S2", "SF1", "LF1")} == {4}
    assert any("over 4 of 5 pictures" in note for note in sheet.notes)
    assert {cell(sheet, label, "sharpness").n for label in ("S1", "S2")} == {6}


def test_pictures_without_a_truth_have_no_distance_from_it(study: Restoration) -> None:
    assert {p.source for p in study.pictures if not p.truth} == {"f", "g"}
    film = next(sheet for sheet in study.scenes if sheet.of == "Old Film")
    assert {r.cells["psnr"].absent for r in film.rows} == {"truth"}
    assert all(r.cells["sharpness"].n == 2 for r in film.rows)
    assert {s.source for s in study.scores if s.measure == "psnr"} == {"a", "b", "c", "d", "e"}


def test_the_truths_share_is_what_fidelity_wording_adds(study: Restoration) -> None:
    found = {(e.factor, e.measure, e.within): e for e in study.effects}
    assert found["fidelity", "psnr", ""].difference > 3
    assert abs(found["length", "psnr", ""].difference) < 0.2  # only SF1 and LF1 are alike otherwise


def test_stability_drops_pictures_without_all_repeats(study: Restoration) -> None:
    found = {(t.method, t.measure): t for t in study.stability}
    assert (found["banana · S2", "psnr"].pictures, found["banana · S2", "psnr"].dropped) == (4, 1)
    assert (found["banana · S1", "psnr"].pictures, found["banana · S1", "psnr"].dropped) == (5, 0)
    assert found["banana · S1", "sharpness"].pictures == 7
    assert ("specialist", "psnr") not in found


def test_a_gathered_run_is_not_gathered_again(tree: Path, study: Restoration) -> None:
    again = judge_restorations(gather([tree]), metrics=["psnr", "SSIM", "sharpness"])
    assert again.to_dict() == study.to_dict()


def test_two_runs_are_one_study(tmp_path: Path, tree: Path, study: Restoration) -> None:
    """The specialist's outputs in a run of their own, over the same inputs."""
    folder = write_tree(tmp_path / "tree")
    for name, others in (("one", "specialist"), ("two", "banana")):
        aside = tmp_path / f"{name}-aside"
        (folder / others).rename(aside)
        import_run(folder, tmp_path / name)
        aside.rename(folder / others)
        score(tmp_path / name, ["psnr", "ssim", "sharpness"], workers=1)
    both = judge_restorations(tmp_path / "one", tmp_path / "two", metrics=["psnr", "sharpness"])
    alone = judge_restorations(tree, metrics=["psnr", "sharpness"])
    assert both.overall is not None
    assert alone.overall is not None
    assert both.overall.rows == alone.overall.rows
    assert both.prompts[0].rows == alone.prompts[0].rows
    assert {m.id for m in both.methods} == {m.id for m in study.methods}


def test_published_scores_without_pictures_are_judged_too(tmp_path: Path) -> None:
    lines = [
        [editor, image, 1, psnr, musiq]
        for editor, base in (("a", 20), ("b", 22))
        for image, psnr, musiq in (("x", base, 60), ("y", base + 2, 50), ("z", base + 4, 40))
    ]
    table = written(tmp_path / "s.csv", ["method", "image", "step", "psnr", "musiq"], lines)
    import_run(table, tmp_path / "run", kind="restore")
    study = judge_restorations(tmp_path / "run")
    assert study.overall is not None
    assert (cell(study.overall, "a", "psnr").mean, cell(study.overall, "b", "psnr").mean) == (
        22,
        24,
    )
    assert cell(study.overall, "b", "psnr").place == 1
    assert any("as published by" in note for note in study.notes)
    assert len(study.tradeoff) == 2


def test_our_suite_is_judged_with_controls_apart(tmp_path: Path) -> None:
    names = ("page-defocus", "crowd-surveillance", "cloth-digital-zoom")
    spec = {
        "suite": part_of_restoration(tmp_path / "suite", *names),
        "editors": ["ref:restorer", "classic:nlm"],
        "cycles": ["s1", "sf2", "restore"],
        "size": 64,
        "repeats": 3,
    }
    run(tmp_path / "run", spec)
    score(tmp_path / "run", ["psnr", "sharpness", "detail-ratio"], workers=1)
    study = judge_restorations(tmp_path / "run", metrics=["psnr", "sharpness"])
    assert [m.label for m in study.methods if not m.control] == [
        "classic:nlm",
        "ref:restorer · S1",
        "ref:restorer · SF2",
    ]
    assert study.overall is not None
    controls = [r for r in study.overall.rows if r.control]
    assert "ref:identity" in {r.label for r in controls}
    assert all(c.place == 0 for r in controls for c in r.cells.values())
    assert study.overall.rows[-len(controls) :] == tuple(controls)
    assert {(s.by, s.of) for s in study.scenes} >= {("damage", "Surveillance"), ("scene", "Crowd")}
    crowd = next(s for s in study.scenes if s.of == "Crowd")
    assert crowd.rows[0].cells["psnr"].absent == "truth"
    assert {e.factor for e in study.effects} == {"fidelity"}
    same = [t for t in study.stability if t.method == "classic:nlm"]
    assert {t.note for t in same} == {"identical in all repeats"}
    assert {c.by for c in study.counts} == {"measured"}
    assert not [c for c in study.counts if c.method in ("classic:nlm", "ref:identity") and c.cases]


def labelled(path: Path, rows: list[tuple[str, str, str, float, str | None]]) -> None:
    """Add answers of people: chain, metric, version, value, note."""
    told = [
        {
            "chain": chain, "step": 1, "metric": metric, "version": version, "against": "none",
            "where": "all", "value": value, "note": note,
        }
        for chain, metric, version, value, note in rows
    ]  # fmt: skip
    RunStore.open(path).add_scores(rows_frame(told))


def test_peoples_labels_become_cases_by_majority(tmp_path: Path) -> None:
    path = scored_tree(tmp_path)
    chains = {
        (c.key.editor, c.key.cycle.partition("@")[0], c.key.source, c.key.repeat): c.key.id
        for c in RunStore.open(path).chains()
    }
    rows: list[tuple[str, str, str, float, str | None]] = []
    for prompt, cases in (("s1", "ab"), ("s2", "c"), ("sf1", ""), ("lf1", "a")):
        for source in "acdefg":
            chain = chains["banana", prompt, source, 0]
            for rater, lenient in (("p01", False), ("p02", False), ("p03", True)):
                yes = source in cases and not lenient
                rows.append(
                    (chain, "human/infidelity", f"s:{rater}", float(yes), "cap" if yes else None)
                )
            rows.append((chain, "human/quality", "s:p01", 4.0 if "f" in prompt else 2.0, None))
    labelled(path, rows)
    study = judge_restorations(path, metrics=["psnr", "human/quality"])
    found = {c.method: (c.cases, c.looked, c.by) for c in study.counts}
    assert found == {
        "banana · S1": (1, 6, "people (s)"),  # b was not shown
        "banana · S2": (1, 6, "people (s)"),
        "banana · SF1": (0, 6, "people (s)"),
        "banana · LF1": (1, 6, "people (s)"),
    }
    case = next(c for c in study.cases if c.method == "banana · S2")
    assert (case.source, case.votes, case.evidence) == ("c", 3, "cap")
    assert case.share == pytest.approx(2 / 3)
    means = {(m.factor, m.level): m.per_prompt for m in study.case_means}
    assert means["fidelity", "no"] == 1
    assert means["fidelity", "yes"] == 0.5
    (sheet,) = study.prompts
    assert cell(sheet, "LF1", "human/quality").mean == 4
    assert cell(sheet, "S1", "human/quality").mean == 2
    assert "1.00 cases per prompt with fidelity no" in str(study)


def test_a_run_that_restores_nothing_says_so(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite")
    run(
        tmp_path / "run",
        {"suite": str(suite), "editors": ["ref:blur"], "cycles": ["copy"], "steps": 1},
    )
    with pytest.raises(
        InputError, match=r"no chains that restore.*--suite restoration-v1.*import FOLDER --to RUN"
    ):
        judge_restorations(tmp_path / "run")


def test_a_run_without_scores_names_the_command(tmp_path: Path) -> None:
    import_run(write_tree(tmp_path / "tree"), tmp_path / "run")
    with pytest.raises(
        ConvergeBenchError, match=r"convergebench score .*run --metrics restoration"
    ):
        judge_restorations(tmp_path / "run")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metrics": ["lpips"]}, "no scores of lpips.*score .* --metric lpips"),
        ({"metrics": ["psnr@registered"]}, "no scores of psnr@registered.*--registered"),
        ({"metrics": ["pnsr"]}, "Did you mean .*psnr"),
        ({"metrics": ["clip-direction"]}, "direction of an edit"),
        ({"methods": ["SF7"]}, "no method called 'SF7'. Did you mean .*SF1"),
    ],
)
def test_what_cannot_be_shown_is_named(tree: Path, given: dict[str, list[str]], words: str) -> None:
    with pytest.raises((InputError, UnknownName), match=words):
        judge_restorations(tree, **given)


def test_a_metric_after_registration_is_a_column_of_its_own(tmp_path: Path) -> None:
    import_run(write_tree(tmp_path / "tree", side=96), tmp_path / "run")
    score(tmp_path / "run", ["psnr"], registered=True, workers=1)
    study = judge_restorations(tmp_path / "run", metrics=["psnr", "psnr@registered"])
    assert [m.title for m in study.measures] == ["PSNR", "PSNR (registered)"]
    assert study.overall is not None
    assert cell(study.overall, "specialist", "psnr@registered").absent in ("", "score")
    assert any("psnr@registered" in note for note in judge_restorations(tmp_path / "run").notes)
