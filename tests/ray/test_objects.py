"""A cluster and object storage together: workers read frames from the store by themselves."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from convergebench.runner import run
from convergebench.scorer import score
from convergebench.scoretable import read_parts
from convergebench.store import RunStore
from tests.ray.cluster import Cluster
from tests.ray.test_score import KEY
from tests.remote.objects import SECRET, Proxy, client, serving_objects, settings
from tests.support.runs import write_suite

METRICS = ["psnr", "ssim", "sharpness"]


@pytest.mark.timeout(400)
def test_a_run_on_s3_is_scored_by_a_cluster_as_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = write_suite(tmp_path / "suite", size=200)
    table = {"suite": str(suite), "editors": ["ref:noise", "ref:jpeg"], "rounds": 2}
    run(tmp_path / "run", table, controls=False)
    score(tmp_path / "run", METRICS)
    with serving_objects() as url, Proxy(url) as proxy:
        place = f"s3://{client(url).make_bucket()}/run"
        theirs = settings(proxy.url, str(tmp_path / "theirs"), 30)
        with Cluster(environment=theirs) as cluster:
            cluster.add()
            for name, value in settings(proxy.url, str(tmp_path / "ours"), 30).items():
                monkeypatch.setenv(name, value)
            run(place, table, controls=False)
            proxy.forget()
            done = score(place, METRICS, engine="ray", address=cluster.address)
            secrets = [p for p in cluster.folder.rglob("*") if p.is_file() and _has(p, SECRET)]
        listed = proxy.of_kind("LIST", "frames")
    assert not done.problems
    assert not done.null
    here, there = RunStore.open(tmp_path / "run"), _scores_kept(tmp_path / "ours")
    assert_frame_equal(here.scores().sort(KEY), there.sort(KEY), check_exact=True)
    assert not secrets  # credentials go through no file of Ray's
    # The workers' own working copy has the frames: they fetched them, the driver sent none.
    assert list((tmp_path / "theirs").glob("*/cache/*/*"))
    assert not listed


def _has(path: Path, text: str) -> bool:
    try:
        return text.encode() in path.read_bytes()
    except OSError:
        return False


def _scores_kept(copies: Path) -> pl.DataFrame:
    (copy,) = [path for path in copies.iterdir() if (path / "scores").is_dir()]
    return read_parts(copy / "scores")
