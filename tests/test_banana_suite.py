"""The suite `banana100`: what the paper says it must be, and that it is drawn and edited so."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.cycle import Cycle
from convergebench.editor import EditRequest
from convergebench.editors.reference import open_editor as reference
from convergebench.editors.reference.operations import PLACES, place_box
from convergebench.errors import EditorFailed
from convergebench.frame import Frame
from convergebench.importer.layouts.variants import INITIALS, parse_variant
from convergebench.registry import open_suite
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.suite import Suite, check_suite, region_box

# Table 1 of the paper: width × height.
TABLE_1 = {
    "building": (3392, 5056),
    "dongpo": (5504, 3072),
    "ekphrasis": (5632, 3072),
    "fog": (5504, 3072),
    "holi": (5632, 3072),
    "library": (5632, 3072),
    "moss": (4800, 3584),
    "peacock": (4800, 3584),
    "rice": (5504, 3072),
    "sand": (5504, 3072),
    "table": (5504, 3072),
    "kokoro": (1664, 2432),
    "yuiman": (3000, 3000),
}
PROMPT = "Produce an exact replica of the provided image, with no alterations."

# Of a short side of 256: to draw them in full takes minutes.
PIXELS = {
    "building": "650e3b38f22896509af90798f09f60ee35cd4883e1b5ee3cb5e66d6388ecfcf4",
    "dongpo": "5c8de7067d2b38b968ae8b5c666e0ed582ca4ba74acf7e3f6ca73c6b2f8293d5",
    "ekphrasis": "0d13db8234c6582e4d929caa096cb008510a502e8a4837dcb17596202b218e2c",
    "fog": "3a1e80a90458a2f66c5e5e2da2ab26e0498845649ff55c490b7b219728dcb352",
    "holi": "676ff8c21be40cb7203e56370c14e62f4d1d286ee479d4aa90892643cbfd74dd",
    "library": "e449bb1ccaf2d468e598a9468a3fa0079d09835e0d9de0d22cc8c310c2d1a435",
    "moss": "052166a0221bdbeaa61c3d731b88dbf910784ea727ffaa805a1e0726be2af09f",
    "peacock": "e792ee935fa6c81d1545e15ca0ed433a4ac208e6f383c1f6348433785a3f3677",
    "rice": "d741607cc23309c0f6f641a4378fbe75a90af5c5fc82ab3e7b9b391c98768176",
    "sand": "8c169bcf6d123c78c49b02ea92b7bb69e3bc3c063ca687c95f716756a0c267fc",
    "table": "4054694dd6ec5034657e32a267ca834710243dc450cef8504159c347d84ff3f2",
    "kokoro": "a01e53a647ea49f4df7b939c7f0522749e4b9c9a960abd03d4a87587c04d543d",
    "yuiman": "bf635eb9597eb4672aa790ffb7fc46d0497efca8e35705f2fdfd5469d121d405",
}


@pytest.fixture(scope="module")
def suite() -> Suite:
    return open_suite("banana100")


def test_the_sources_are_those_of_table_1_in_their_sizes(suite: Suite) -> None:
    assert {s.name: (s.width, s.height) for s in suite.source} == TABLE_1
    assert set(TABLE_1) == INITIALS, "an import must find them by the same names"
    assert {s.name: s.drawn_size(suite.size) for s in suite.source} == TABLE_1
    assert all(s.description and s.category.startswith(("Pres", "Addition")) for s in suite.source)
    assert len({s.draw for s in suite.source}) == 13, "each of another texture"
    assert check_suite(suite) == []
    assert suite.fingerprint == suite.content_hash()


def test_the_drawn_pictures_are_the_same_on_every_machine(suite: Suite) -> None:
    drawn = {source.name: suite.frame(source, 256) for source in suite.source}
    assert {name: frame.pixel_digest for name, frame in drawn.items()} == PIXELS
    sizes = {name: (f.facts.width, f.facts.height) for name, f in drawn.items()}
    assert sizes["ekphrasis"] == (469, 256)
    assert sizes["kokoro"] == (256, 374)
    assert all(min(size) == 256 for size in sizes.values())


def test_the_replication_prompt_is_the_papers_word_for_word(suite: Suite) -> None:
    (edit,) = suite.cycle_named("replicate").edit
    assert edit.prompts[0] == PROMPT
    assert len(set(edit.prompts)) >= 6, "and at least five phrasings of it"
    (denoising,) = suite.cycle_named("replicate-denoise").edit
    assert denoising.prompts[0].startswith(PROMPT)
    assert "noise" in denoising.prompts[0]


def test_every_prompt_says_where_it_is_from(suite: Suite) -> None:
    for cycle in suite.cycle:
        for edit in cycle.edit:
            assert "Banana100 paper, section" in (edit.citation or ""), cycle.name
            assert "ours" in (edit.citation or "") or "our words" in (edit.citation or "")


def test_every_variant_of_the_paper_is_a_cycle_that_comes_home_when_it_says(suite: Suite) -> None:
    kinds = {cycle.name: cycle.kind for cycle in suite.cycle}
    assert kinds == {
        "replicate": "replicate",
        "replicate-denoise": "replicate",
        "mirror": "mirror",
        "rotate": "rotate",
        "reconstruct": "reconstruct",
        "recolour": "recolour",
        "add-apples": "accumulate",
        "add-100-fruits": "accumulate",
    }

    def home(cycle: Cycle) -> list[int]:
        frames = ((step, cycle.home(step)) for step in range(1, 13))
        return [n for n, h in frames if h and not (h.flip or h.quarters or h.grey)]

    homes = {cycle.name: home(cycle) for cycle in suite.cycle}
    assert homes["replicate"] == list(range(1, 13))
    assert homes["mirror"] == homes["recolour"] == [2, 4, 6, 8, 10, 12]
    assert homes["rotate"] == [4, 8, 12]
    assert homes["reconstruct"] == [3, 6, 9, 12]
    assert homes["add-apples"] == []


def test_edges_are_taken_from_the_picture_and_it_is_rebuilt_from_patches_and_edges(
    suite: Suite,
) -> None:
    cycle = suite.cycle_named("reconstruct")
    assert [cycle.inputs_at(step) for step in (1, 2, 3)] == [(0,), (0,), (1, 2)]
    assert [cycle.inputs_at(step) for step in (4, 5, 6)] == [(3,), (3,), (4, 5)]


def test_a_hundred_different_fruits_are_added_each_with_its_article(suite: Suite) -> None:
    (edit,) = suite.cycle_named("add-100-fruits").edit
    assert len(edit.items) == len({item.lower() for item in edit.items}) == 100
    for item in edit.items:
        article, _, fruit = item.partition(" ")
        assert article == ("an" if fruit[0].lower() in "aeiou" else "a"), item
    prompts = {edit.wording(0, n) for n in range(1, 101)}
    assert len(prompts) == 100
    assert "Add an apple to the table. Keep everything else exactly as it is." in prompts


def test_an_import_calls_the_cycles_as_the_suite_does(suite: Suite) -> None:
    for cycle in suite.cycle:
        told = parse_variant(cycle.name)
        assert (told.cycle, told.kind, told.rest) == (cycle.name, cycle.kind, "")
    assert parse_variant("w_denoise").cycle == "replicate-denoise"


# -- additions --------------------------------------------------------------------------------


def count_objects(frame: NDArray[np.uint8], before: NDArray[np.uint8]) -> int:
    """How many spots of a frame differ from what was there before; their shadows do little."""
    changed = (np.abs(frame.astype(int) - before).max(axis=2) > 20).astype(np.uint8)
    whole = cv2.morphologyEx(changed, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(whole, connectivity=8)
    return int((stats[1:count, cv2.CC_STAT_AREA] > 20).sum())


@pytest.mark.parametrize("cycle", ["add-apples", "add-100-fruits"])
def test_an_exact_editor_shows_exactly_k_objects_after_step_k(suite: Suite, cycle: str) -> None:
    wanted = suite.cycle_named(cycle)
    source = suite.source_named("table")
    origin = suite.frame(source, 384)
    frame, editor = origin, reference("identity")
    for step in range(1, 101):
        edit = wanted.edit_at(step)
        request = EditRequest(
            (frame,), edit.wording(0, step), edit, step, None, region=region_box(edit, source)
        )
        frame = Frame(editor.edit(request).data)
        if step in (1, 2, 3, 10, 37, 99, 100):
            assert count_objects(frame.pixels, origin.pixels) == wanted.expected_count(step) == step
    with pytest.raises(EditorFailed, match="places for 100 objects, and step 101"):
        editor.edit(EditRequest((frame,), "", edit, 101, None, region=region_box(edit, source)))


def test_the_fruits_look_different_and_the_apples_alike(suite: Suite) -> None:
    source = suite.source_named("table")
    origin = suite.frame(source, 512)
    width, height = origin.facts.width, origin.facts.height
    hues: dict[str, set[int]] = {}
    for cycle in ("add-apples", "add-100-fruits"):
        edit = suite.cycle_named(cycle).edit_at(1)
        region = region_box(edit, source)
        assert region is not None
        for step in range(1, 9):
            request = EditRequest((origin,), "", edit, step, None, region=region)
            pixels = Frame(reference("identity").edit(request).data).pixels
            x0, y0, x1, y1 = place_box(region, step, width, height)
            x, y = (x0 + x1) // 2, (y0 + y1) // 2
            body = pixels[y : y + 6, x - 3 : x + 3]
            hue = cv2.cvtColor(np.ascontiguousarray(body), cv2.COLOR_RGB2HSV)[..., 0]
            hues.setdefault(cycle, set()).add(int(np.median(hue)) // 10)
    assert len(hues["add-apples"]) == 1
    assert len(hues["add-100-fruits"]) >= 6


@pytest.mark.parametrize("size", [(5504, 3072), (459, 256), (256, 459), (300, 300)])
def test_no_two_places_share_a_pixel(size: tuple[int, int]) -> None:
    taken = np.zeros((size[1], size[0]), int)
    for step in range(1, PLACES + 1):
        x0, y0, x1, y1 = place_box((0.03, 0.5, 0.97, 0.9), step, *size)
        taken[y0:y1, x0:x1] += 1
    assert taken.max() == 1
    assert taken[: int(size[1] * 0.5)].max() == 0


def test_every_cycle_runs_with_a_reference_editor_and_an_exact_one_comes_home(
    tmp_path: Path, suite: Suite
) -> None:
    result = run(
        tmp_path / "run",
        suite="banana100",
        editors=["ref:identity"],
        sources=["kokoro", "table"],
        steps=12,
        size=64,
        controls=False,
    )
    assert result.complete
    store = RunStore.open(tmp_path / "run")
    for chain in store.chains():
        cycle = suite.cycle_of(chain.key.cycle)
        assert chain.source is not None
        origin = store.frame(chain.source).pixels
        for step in chain.steps:
            home = cycle.home(step.step)
            if home is not None and step.frame is not None:
                frame = store.frame(step.frame).pixels
                assert np.array_equal(frame, home.view(origin)), (chain.key.id, step.step)
