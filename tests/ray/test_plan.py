"""A plan asks a cluster for how many of each metric's workers it has room."""

from __future__ import annotations

import pytest

from convergebench.errors import EngineError
from convergebench.planner.scoring import Asked, _workers
from convergebench.registry import metric_spec
from tests.ray.cluster import Cluster, free_port

SPECS = {name: metric_spec(name) for name in ("psnr", "topiq-nr")}


def test_the_room_of_all_nodes_is_counted(cluster: Cluster) -> None:
    found, whose = _workers(Asked("ray", address=cluster.address), SPECS)
    assert found == {"psnr": 2, "topiq-nr": 2}
    assert whose == f"as {cluster.address} has room"
    asked = Asked("ray", workers=7, address=cluster.address)
    assert _workers(asked, SPECS) == ({"psnr": 7, "topiq-nr": 7}, "as asked")


def test_where_no_cluster_answers_it_is_said() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(EngineError, match=rf"there is no Ray cluster at {address}"):
        _workers(Asked("ray", address=address), SPECS)


def test_a_plan_looks_where_score_looks(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    found, whose = _workers(Asked("ray"), SPECS)
    assert found == {"psnr": 2, "topiq-nr": 2}
    assert whose == f"as {cluster.address} has room"
    monkeypatch.delenv("RAY_ADDRESS")
    assert _workers(Asked("ray"), SPECS)[1] == "as this machine has room"
