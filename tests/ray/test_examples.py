"""The cluster configurations of examples/cluster, as Ray and Kubernetes read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"


def test_rays_launcher_takes_the_aws_file() -> None:
    table = yaml.safe_load((FOLDER / "aws.yaml").read_text())
    prepared = prepare_config(table)
    validate_config(prepared)
    types = prepared["available_node_types"]
    assert types["head"]["resources"]["CPU"] == 0
    assert prepared["head_node_type"] == "head"
    for name in ("cpu", "gpu"):
        assert types[name]["min_workers"] == types[name]["max_workers"] > 0
        assert types[name]["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert "InstanceMarketOptions" not in types["head"]["node_config"]
    for kind in types.values():
        assert kind["node_config"]["IamInstanceProfile"]["Name"].startswith("convergebench-")


def test_the_kubernetes_file_is_consistent() -> None:
    parts = list(yaml.safe_load_all((FOLDER / "kuberay.yaml").read_text()))
    by_kind = {part["kind"]: part for part in parts}
    assert list(by_kind) == ["ServiceAccount", "PersistentVolumeClaim", "RayCluster", "RayJob"]
    cluster, job = by_kind["RayCluster"]["spec"], by_kind["RayJob"]["spec"]
    assert job["clusterSelector"] == {"ray.io/cluster": by_kind["RayCluster"]["metadata"]["name"]}
    assert "--engine ray --address auto" in job["entrypoint"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    images = {container["image"] for pod in pods for container in _containers(pod)}
    assert len(images) == 1  # the same versions everywhere
    for pod in pods:
        spec = pod["template"]["spec"]
        assert spec["serviceAccountName"] == by_kind["ServiceAccount"]["metadata"]["name"]
        claims = [v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"]]
        assert claims == [by_kind["PersistentVolumeClaim"]["metadata"]["name"]]
        for container in _containers(pod):
            assert container["resources"]["limits"] == container["resources"]["requests"]
    head, *workers = pods
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert all(w["minReplicas"] == w["replicas"] == w["maxReplicas"] > 0 for w in workers)
    gpus = [c["resources"]["limits"].get("nvidia.com/gpu") for w in workers for c in _containers(w)]
    assert gpus == [None, "1"]


def test_one_version_of_ray_in_all_files() -> None:
    parts = list(yaml.safe_load_all((FOLDER / "kuberay.yaml").read_text()))
    version = parts[2]["spec"]["rayVersion"]
    assert f"rayproject/ray:{version}-py311" in (FOLDER / "Dockerfile").read_text()


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pod["template"]["spec"]["containers"]
    return found
