"""The viewer's data: what it tells, what it leaves out, and that nothing in it can run."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from convergebench.chain import Chain
from convergebench.frame import Frame, decode
from convergebench.gathering import gather
from convergebench.reporter import Report, build, pictures, report
from convergebench.reporter.strips import fold
from convergebench.reporter.viewer import _listed, chain_address, scores_of
from convergebench.store import RunStore
from tests.reporter.pages import assert_links_resolve, read_page
from tests.reporter.walked import HEIGHT, HOSTILE, REASONING, WIDTH
from tests.support.runs import shelf


@pytest.fixture(scope="module")
def shown(walked: Path) -> Report:
    return report(walked)  # again: nothing is written


def told(shown: Report, source: str = "s0") -> dict[str, Any]:
    text = (shown.path.parent / "data" / f"source-{source}.js").read_text("utf-8")
    found: dict[str, Any] = json.loads(
        text.removeprefix('convergebench("chains",').removesuffix(");\n")
    )
    return found


def chains(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {chain["id"]: chain for cycle in data["cycles"] for chain in cycle["chains"]}


def stored(walked: Path) -> list[Chain]:
    return RunStore.open(walked).chains()


def test_every_step_of_every_chain_is_told(walked: Path, shown: Report) -> None:
    for source in ("s0", "s1"):
        data = told(shown, source)
        found = chains(data)
        mine = [chain for chain in stored(walked) if chain.key.source == source]
        assert set(found) == {chain.key.id for chain in mine}
        for chain in mine:
            steps = found[chain.key.id]["steps"]
            assert len(steps) == max(step.step for step in chain.steps)
            for step in chain.final:
                here = steps[step.step - 1]
                assert here.get("outcome", "edited") == step.outcome
                assert data["texts"][here["prompt"]] == step.prompt
                assert here["seed"] == step.seed
                if step.frame:
                    assert here["frame"]["file"].startswith(step.frame.sha256)
                    assert here["frame"]["size"] == [step.frame.width, step.frame.height]


def test_calls_are_told_as_they_were_recorded(shown: Report) -> None:
    data = told(shown)
    noisy = [chain for chain in chains(data).values() if chain["editor"] == HOSTILE]
    assert len(noisy) == 5
    for chain in noisy:
        for step in chain["steps"]:
            assert step["cost"] == 0.039
            assert data["texts"][step["reasoning"]] == REASONING
            assert data["texts"][step["model"]] == HOSTILE
            assert data["texts"][step["effective"]] == HOSTILE
            assert [data["texts"][n] for n in step["caveats"]] == [HOSTILE, "resampled"]
            assert data["texts"][step["asked"]] == "64x64 png"
            assert data["texts"][step["request"]] == HOSTILE
            assert data["texts"][step["basis"]] == "reported"
        assert [step.get("lost") for step in chain["steps"]] == [None, 0.5, None, None]
    quiet = next(chain for chain in chains(data).values() if chain["editor"] == "ref:blur")
    assert "reasoning" not in quiet["steps"][0]
    assert "caveats" not in quiet["steps"][0]


def test_a_text_is_kept_once(shown: Report) -> None:
    texts = told(shown)["texts"]
    assert len(texts) == len(set(texts))
    assert texts.count(REASONING) == 1


def test_homes_say_how_they_are_turned(shown: Report) -> None:
    homes = {
        cycle["name"]: [
            {name: value for name, value in home.items() if name != "words"} if home else None
            for home in cycle["chains"][0]["homes"]
        ]
        for cycle in told(shown)["cycles"]
    }
    flip = {"flip": "horizontal"}
    assert homes["copy"] == [{}, {}, {}, {}, {}]
    assert homes["ball"] == [{}, None, {}, None, {}]
    assert homes["mirror"] == [{}, flip, {}, flip, {}]
    assert homes["turn"] == [{}, {"quarters": 1}, {"quarters": 2}, {"quarters": 3}, {}]
    assert homes["grey"] == [{}, {"grey": True}, {}, {"grey": True}, {}]


def test_scores_are_those_of_the_table_against_home(walked: Path, shown: Report) -> None:
    data = told(shown)
    names = [metric["name"] for metric in data["metrics"]]
    assert names == ["psnr", "ssim"]
    table = gather([walked]).scores.filter(
        (pl.col("against") == "home") & (pl.col("where") == "all")
    )
    known = {(c, s, m): v for c, s, m, v in table["chain", "step", "metric", "value"].iter_rows()}
    seen: list[Any] = []
    for chain in chains(data).values():
        for number, step in enumerate(chain["steps"], 1):
            for name, score in zip(names, step.get("scores", ()), strict=False):
                value = known[chain["id"], number, name]
                if math.isinf(value):
                    assert score[0] == "∞"
                else:
                    assert score[0] == pytest.approx(value, rel=1e-3)
                assert 0 <= score[1] <= 1
                seen.append(score[0])
    assert len(seen) == len([key for key in known if key[0].startswith("s0--")])
    assert "∞" in seen


def test_scores_of_another_version_are_left_out(walked: Path) -> None:
    rows = gather([walked]).scores
    old = rows.with_columns(version=pl.lit("0"), value=pl.lit(-1.0))
    fresh, both = scores_of(rows, {}), scores_of(pl.concat([rows, old]), {})
    assert both.values == fresh.values
    assert not scores_of(old, {}).values


def test_nothing_in_the_data_can_look_like_markup(shown: Report) -> None:
    for path in (shown.path.parent / "data").glob("source-*.js"):
        text = path.read_text("utf-8")
        assert "script>alert(1)" in text
        assert not re.search("[<\u2028\u2029]", text)


def test_addresses_lead_to_a_row_or_to_a_step() -> None:
    assert chain_address("s0", "s0--copy--x") == "source-s0.html#s0--copy--x"
    assert chain_address("s0", "c", 7, "blink") == "source-s0.html#c/7/blink"
    assert chain_address("s0", "c", 7) == "source-s0.html#c/7/frame"


def test_a_page_names_its_data_and_loads_no_frame(shown: Report) -> None:
    page = read_page(shown.path.parent / "source-s0.html")
    assert page.one("main").attributes["data-viewer"] == "data/source-s0.js"
    images = [image.attributes for image in page.all("img")]
    assert images
    assert all(image["src"].startswith("thumbs/") for image in images)
    assert all(image.get("loading") == "lazy" for image in images)
    assert not [s for s in page.all("script") if "data/" in s.attributes.get("src", "")]


def test_rows_beyond_the_first_cells_are_folded_and_kept_whole(
    walked: Path, shown: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list((shown.path.parent / "data").glob("rows-*"))
    whole = read_page(shown.path.parent / "source-s0.html")
    assert not [row for row in whole.all("tr") if "data-folded" in row.attributes]
    monkeypatch.setattr(build, "fold", lambda strips: fold(strips, 12))
    folder = report(walked, out=tmp_path / "pages").path.parent
    page = read_page(folder / "source-s0.html")
    text = (folder / "data" / "rows-s0.js").read_text("utf-8")
    assert not re.search("[<\u2028\u2029]", text)
    rows = json.loads(text.removeprefix('convergebench("rows",').removesuffix(");\n"))
    folded = {r.attributes["id"] for r in page.all("tr") if "data-folded" in r.attributes}
    assert folded == set(rows)
    assert len(folded) >= 15
    for row in page.all("tr"):
        name = row.attributes.get("id", "")
        if not name:
            continue
        ends = whole.one(name).all("td")
        if name in folded:
            assert len(row.all("img")) <= 2
            assert row.all("td")[0].text == ends[0].text
            assert re.search(r"\d+ more frames", row.text)
            path = tmp_path / "row.html"
            path.write_text(f"<table><tr>{rows[name]}</tr></table>", "utf-8")
            assert [c.text for c in read_page(path).all("td")] == [c.text for c in ends]
        else:
            assert [c.text for c in row.all("td")] == [c.text for c in ends]
    assert_links_resolve(folder)


def test_a_warm_report_decodes_nothing(
    walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def counted(data: bytes) -> Any:
        decoded.append(len(data))
        return decode(data)

    monkeypatch.setattr(pictures, "decode", counted)
    report(walked, out=tmp_path / "pages")
    thumbs = list((tmp_path / "pages" / "thumbs").glob("*/*.webp"))
    assert len(decoded) == len(thumbs) > 50
    decoded.clear()
    report(walked, out=tmp_path / "pages")
    assert not decoded


def test_thumbnails_weigh_little_beside_real_frames(walked: Path, tmp_path: Path) -> None:
    from convergebench import drawing

    folder, store = tmp_path / "pages", shelf(tmp_path)
    refs = []
    for number, name in enumerate(("portrait", "foliage", "still-life")):
        pixels = drawing.scene(name, 512, 512)
        for kind in ("png", "jpeg"):
            path = tmp_path / f"{number}.{kind}"
            Image.fromarray(pixels).save(path, quality=85)
            store.put(Frame(path.read_bytes()))
            refs.append((_ref(path, kind), path))
    pictures.bring_pictures([(ref, store) for ref, _ in refs], folder)
    weights = {p.name[:64]: p.stat().st_size for p in (folder / "thumbs").glob("*/*")}
    for ref, path in refs:
        assert weights[ref.sha256] < 0.25 * path.stat().st_size


def _ref(path: Path, kind: str) -> Any:
    from convergebench.chain import FrameRef
    from convergebench.frame import sha256

    data = path.read_bytes()
    return FrameRef(sha256=sha256(data), format=kind, bytes=len(data), width=512, height=512)


def test_the_pictures_are_as_wide_as_they_are_told(shown: Report) -> None:
    chain = next(iter(chains(told(shown)).values()))
    assert chain["source"]["size"] == [WIDTH, HEIGHT]


def test_nested_records_are_told_in_plain_words() -> None:
    told = {"tokens": {"image": 1500, "text": 9}, "modes": ["TEXT", "IMAGE"], "cut": False}
    assert _listed(told) == "tokens (image 1500, text 9), modes TEXT; IMAGE, cut false"
