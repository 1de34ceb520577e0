"""RALI with random numbers, its files written as the authors' program reads them."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.metric import NoScore, Picture, StepView
from convergebench.metrics.clip import Preparation
from convergebench.metrics.rali import RALI, Prototypes, Rali, pca_mean, rali, read
from convergebench.testing import check_metric
from tests.metrics import towers
from tests.metrics.pairs import scene

# scikit-learn 1.9.1's PCA(2).fit(np.arange(12.0).reshape(4, 3) ** 2), by joblib 1.6.0's dump; its
# mean_ is [31.5, 41.5, 53.5].
JOBLIB = base64.b64decode(
    "gASVygEAAAAAAACMGnNrbGVhcm4uZGVjb21wb3NpdGlvbi5fcGNhlIwDUENBlJOUKYGUfZQojAxuX2NvbXBvbmVu"
    "dHOUSwKMBGNvcHmUiIwGd2hpdGVulImMCnN2ZF9zb2x2ZXKUjARhdXRvlIwDdG9slEcAAAAAAAAAAIwOaXRlcmF0"
    "ZWRfcG93ZXKUaAmMDW5fb3ZlcnNhbXBsZXOUSwqMGnBvd2VyX2l0ZXJhdGlvbl9ub3JtYWxpemVylGgJjAxyYW5k"
    "b21fc3RhdGWUTowObl9mZWF0dXJlc19pbl+USwOMD19maXRfc3ZkX3NvbHZlcpSMBGZ1bGyUjAVtZWFuX5SME2pv"
    "YmxpYi5udW1weV9waWNrbGWUjBFOdW1weUFycmF5V3JhcHBlcpSTlCmBlH2UKIwIc3ViY2xhc3OUjAVudW1weZSM"
    "B25kYXJyYXmUk5SMBXNoYXBllEsDhZSMBW9yZGVylIwBQ5SMBWR0eXBllGgZjAVkdHlwZZSTlIwCZjiUiYiHlFKU"
    "KEsDjAE8lE5OTkr/////Sv////9LAHSUYowKYWxsb3dfbW1hcJSIjBtudW1weV9hcnJheV9hbGlnbm1lbnRfYnl0"
    "ZXOUSxB1Ygr/////////////AAAAAACAP0AAAAAAAMBEQAAAAAAAwEpAlZ0AAAAAAAAAjA9ub2lzZV92YXJpYW5j"
    "ZV+UjBZudW1weS5fY29yZS5tdWx0aWFycmF5lIwGc2NhbGFylJOUaCVDCCFZf00tCQc6lIaUUpSMCm5fc2FtcGxl"
    "c1+USwSMDW5fY29tcG9uZW50c1+USwKMC2NvbXBvbmVudHNflGgVKYGUfZQoaBhoG2gcSwJLA4aUaB6MAUaUaCBo"
    "JWgoiGgpSxB1YgH/TLzE+zNO3j/1F8Oke/noP2KwonjLS+I/FPyGBzyItD+jAmPzfHDlPy1Z4aJs1+O/lTkAAAAA"
    "AAAAjBNleHBsYWluZWRfdmFyaWFuY2VflGgVKYGUfZQoaBhoG2gcSwKFlGgeaB9oIGglaCiIaClLEHViDf//////"
    "//////////9zEQT0Y/q2QD88uu8vcBpAlT8AAAAAAAAAjBlleHBsYWluZWRfdmFyaWFuY2VfcmF0aW9flGgVKYGU"
    "fZQoaBhoG2gcSwKFlGgeaB9oIGglaCiIaClLEHViB//////////JE2c/zvbvP2hu2DGBY1I/lTYAAAAAAAAAjBBz"
    "aW5ndWxhcl92YWx1ZXNflGgVKYGUfZQoaBhoG2gcSwKFlGgeaB9oIGglaCiIaClLEHViEP//////////////////"
    "///sSksK95pgQOnD6XjPzxFAlR4AAAAAAAAAjBBfc2tsZWFybl92ZXJzaW9ulIwFMS45LjGUdWIu"
)
KEPT, COUNT = 10, 7


def learned(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "pca_scale": rng.uniform(0.5, 2, towers.SIZE) * rng.choice([-1, 1], towers.SIZE),
        "pca_components": rng.normal(size=(KEPT, towers.SIZE)),
        "prototypes": rng.normal(size=(COUNT, KEPT)),
        "proto_scores": np.linspace(1.2, 4.6, COUNT),
        "logit_scale": np.array(1 / 0.07),
    }


MEAN = np.random.default_rng(9).normal(size=towers.SIZE)
SETTINGS = {"vision_config": {"num_attention_heads": towers.HEADS, "hidden_act": "quick_gelu"}}
STEPS = {
    "do_center_crop": True,
    "size": {"shortest_edge": 28},
    "crop_size": {"height": 28, "width": 28},
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.25, 0.3],
    "resample": 3,
}


def folder(path: Path, *, without: str = "", **changed: Any) -> Path:
    """A checkpoint folder: torch's archive is stood in for by NumPy's, which reads alike."""
    numbers = {f"scorer.{name}": array for name, array in (learned() | changed).items()}
    numbers |= {f"clip.{name}": array for name, array in towers.parameters().items()}
    numbers.pop(without, None)
    with (path / "ckpt.pt").open("wb") as file:
        arrays: dict[str, Any] = {f"state_dict/{name}": a for name, a in numbers.items()}
        np.savez(file, **arrays)
    (path / "pca.pkl").write_bytes(pickle.dumps({"mean_": MEAN}))
    (path / "best").mkdir(exist_ok=True)
    (path / "best/config.json").write_text(json.dumps(SETTINGS))
    (path / "best/preprocessor_config.json").write_text(json.dumps(STEPS))
    return path


def metric(path: Path) -> Rali:
    return Rali(replace(RALI, isolated=False), lambda: read(path / "ckpt.pt", path / "pca.pkl"))


def plainly(pixels: Any, parts: dict[str, Any]) -> float:
    """The formula, one prototype after another."""
    prepared = Preparation(28, 28, (0.5, 0.4, 0.3), (0.2, 0.25, 0.3))(pixels)
    embedding = towers.image_embedding(towers.parameters(), np.asarray(prepared))
    z = [sum((embedding - MEAN) / abs(parts["pca_scale"]) * row) for row in parts["pca_components"]]
    likeness = [
        math.exp(np.dot(z, p) / np.linalg.norm(z) / np.linalg.norm(p) * parts["logit_scale"])
        for p in parts["prototypes"]
    ]
    pairs = zip(likeness, parts["proto_scores"], strict=True)
    return float(sum(share * score for share, score in pairs) / sum(likeness))


@pytest.mark.parametrize("size", [(28, 28), (80, 96), (33, 60)])
def test_the_formula(tmp_path: Path, size: tuple[int, int]) -> None:
    pixels = scene(*size)
    (found,) = metric(folder(tmp_path)).score([StepView(Picture(pixels))])
    assert found == pytest.approx(plainly(pixels, learned()), abs=1e-4)


def test_the_contract(tmp_path: Path) -> None:
    check_metric(metric(folder(tmp_path)))


def test_openai_conventions_where_the_folder_has_no_settings(tmp_path: Path) -> None:
    """A head of 64 is as wide as two of these towers, so they get one head."""
    folder(tmp_path)
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / "best" / name).unlink()
    (found,) = metric(tmp_path).score([StepView(Picture(scene()))])
    assert isinstance(found, float)


def test_a_strip_has_no_score(tmp_path: Path) -> None:
    view = StepView(Picture(np.zeros((1, 200, 3), np.uint8)))
    (found,) = metric(folder(tmp_path)).score([view])
    assert isinstance(found, NoScore)


numbers = st.floats(-5, 5, width=32)


@settings(deadline=None)
@given(hnp.arrays(np.float64, 6, elements=numbers), st.floats(-10, 1e4))
def test_a_score_lies_between_those_of_the_prototypes(embedding: Any, sharpness: float) -> None:
    rng = np.random.default_rng(4)
    scores = rng.uniform(1, 5, 8)
    parts = Prototypes(
        rng.normal(size=6), np.ones(6), np.eye(6)[:4], rng.normal(size=(8, 4)), scores, sharpness
    )
    assert scores.min() - 1e-9 <= parts.score(embedding) <= scores.max() + 1e-9


# -- files that do not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pca_scale": np.ones(5)}, r"scale have the shape \(5,\), expected \(24,\)"),
        ({"pca_components": np.ones((KEPT, 9))}, r"components .* expected \(10, 24\)"),
        ({"prototypes": np.ones((COUNT, 3))}, r"vectors .* expected \(7, 10\)"),
        ({"proto_scores": np.ones(3)}, r"scores .* expected \(7,\)"),
        ({"proto_scores": np.full(COUNT, np.nan)}, "scores are not all finite"),
        ({"pca_scale": np.zeros(towers.SIZE)}, "scale or sharpness is 0"),
        ({"logit_scale": np.array(np.inf)}, "scale or sharpness is 0 or not finite"),
        ({"without": "scorer.prototypes"}, r"no checkpoint of RALI: it lacks scorer\.prototypes"),
        ({"without": "clip.visual_projection.weight"}, "lacks visual_projection.weight"),
    ],
)
def test_parts_that_contradict_each_other(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(MetricUnavailable, match=message):
        metric(folder(tmp_path, **changed)).score([StepView(Picture(scene()))])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", {"vision_config": {"hidden_act": "swish"}}, "activation .*: swish"),
        ("config.json", [], "expected a JSON object, got list"),
        ("preprocessor_config.json", STEPS | {"resample": 2}, "other steps than CLIP's"),
        ("preprocessor_config.json", STEPS | {"do_center_crop": False}, "other steps"),
        ("preprocessor_config.json", STEPS | {"crop_size": 14}, "the central 28×28"),
        ("preprocessor_config.json", STEPS | {"size": {"height": 28}}, "other steps"),
    ],
)
def test_settings_that_we_do_not_know(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    (folder(tmp_path) / "best" / name).write_text(json.dumps(content))
    with pytest.raises(MetricUnavailable, match=message):
        metric(tmp_path).score([StepView(Picture(scene()))])


def test_a_pca_of_another_network(tmp_path: Path) -> None:
    (
        folder(tmp_path, pca_scale=np.ones(3), pca_components=np.ones((KEPT, 3))) / "pca.pkl"
    ).write_bytes(JOBLIB)
    with pytest.raises(MetricUnavailable, match="CLIP gives 24 numbers, and its PCA takes 3"):
        metric(tmp_path).score([StepView(Picture(scene()))])


class Evil:
    def __reduce__(self) -> Any:
        return print, ("never",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"mean_": Evil()}), "was refused: it asks for builtins.print"),
        (pickle.dumps({"var_": MEAN}), "no fitted PCA"),
        (JOBLIB[:560], "was refused"),
        (JOBLIB[:300], "was refused"),
        (b"x\x9c123", "compressed or no pickle"),
        (b"", "compressed or no pickle"),
    ],
)
def test_files_that_are_no_pca(
    tmp_path: Path, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder(tmp_path) / "pca.pkl").write_bytes(content)
    with pytest.raises(MetricUnavailable, match=message):
        metric(tmp_path).score([StepView(Picture(scene()))])
    assert not capsys.readouterr().out


@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(JOBLIB) - 1), st.integers(0, 255))
def test_a_damaged_pca_is_read_or_refused(position: int, byte: int) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(JOBLIB[:position] + bytes([byte]) + JOBLIB[position + 1 :])
        file.flush()
        with contextlib.suppress(MetricUnavailable):
            assert pca_mean(Path(file.name)).dtype == np.float64


def test_joblib_files() -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(JOBLIB)
        file.flush()
        np.testing.assert_array_equal(pca_mean(Path(file.name)), [31.5, 41.5, 53.5])


# -- the factory ----------------------------------------------------------------------------------


def test_without_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONVERGEBENCH_WEIGHTS", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(MetricUnavailable, match="convergebench weights pull rali"):
        rali()


def test_a_folder_that_the_user_supplies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by CONVERGEBENCH_WEIGHTS; joblib's file gives the mean of a tower with 3 outputs."""
    for name in ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(tmp_path))
    (tmp_path / "rali").mkdir()
    parts = learned() | {"pca_scale": np.ones(3), "pca_components": np.ones((KEPT, 3))}
    folder(tmp_path / "rali", **parts)
    small = {f"scorer.{name}": array for name, array in parts.items()}
    small |= {f"clip.{name}": array for name, array in towers.parameters().items()}
    small["clip.visual_projection.weight"] = small["clip.visual_projection.weight"][:3]
    with (tmp_path / "rali/ckpt.pt").open("wb") as file:
        np.savez(file, **small)
    (tmp_path / "rali/pca.pkl").write_bytes(JOBLIB)
    assert weights.find("rali", "pca.pkl") == tmp_path / "rali/pca.pkl"
    (found,) = rali().score([StepView(Picture(scene()))])
    assert isinstance(found, float)
    assert 1.2 <= found <= 4.6
