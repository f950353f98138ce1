"""The manifests for KubeRay are what Kubernetes and its operator take, as far as that shows without a cluster.

Kubernetes' own objects are held against the models of its Python client, which are made from the published API.
KubeRay publishes its schema in no package: its fields are written down here from the reference of ray.io/v1.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import models

import handtools
from handtools.fleet.ray_fleet import SLOT_RESOURCE

FOLDER = Path(__file__).parents[2] / "deploy" / "kuberay"
RAY = {
    "RayCluster": {
        "apiVersion": "str",
        "kind": "str",
        "metadata": "V1ObjectMeta",
        "spec": "RayClusterSpec",
    },
    "RayClusterSpec": {
        "suspend": "bool",
        "managedBy": "str",
        "autoscalerOptions": "object",
        "headServiceAnnotations": "dict(str, str)",
        "enableInTreeAutoscaling": "bool",
        "gcsFaultToleranceOptions": "object",
        "headGroupSpec": "HeadGroupSpec",
        "rayVersion": "str",
        "workerGroupSpecs": "list[WorkerGroupSpec]",
    },
    "HeadGroupSpec": {
        "template": "V1PodTemplateSpec",
        "headService": "V1Service",
        "enableIngress": "bool",
        "rayStartParams": "dict(str, str)",
        "serviceType": "str",
    },
    "WorkerGroupSpec": {
        "suspend": "bool",
        "groupName": "str",
        "replicas": "int",
        "minReplicas": "int",
        "maxReplicas": "int",
        "idleTimeoutSeconds": "int",
        "rayStartParams": "dict(str, str)",
        "template": "V1PodTemplateSpec",
        "scaleStrategy": "object",
        "numOfHosts": "int",
    },
}
KINDS = {
    "RayCluster": "RayCluster",
    "Namespace": "V1Namespace",
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "Secret": "V1Secret",
    "NetworkPolicy": "V1NetworkPolicy",
}
PLAIN = {"str": str, "bool": bool, "int": int, "float": (int, float)}


def problems(value: Any, kind: str, at: str = "") -> list[str]:
    """What is wrong with a value that should be of a kind: unknown fields, missing ones, other types."""
    if inner := re.fullmatch(r"[Ll]ist\[(.*)\]", kind):
        if not isinstance(value, list):
            return [f"{at} is no list"]
        return [each for n, one in enumerate(value) for each in problems(one, inner[1], f"{at}[{n}]")]
    if inner := re.fullmatch(r"[Dd]ict[(\[]str, (.*)[)\]]", kind):
        if not isinstance(value, dict):
            return [f"{at} is no mapping"]
        return [each for key, one in value.items() for each in problems(one, inner[1], f"{at}.{key}")]
    if kind in PLAIN:
        is_right = isinstance(value, PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
        return [] if is_right else [f"{at} is {value!r} and not of type {kind}"]
    if kind in {"object", "datetime"}:
        return []
    model = None if kind in RAY else getattr(models, kind)
    fields = (
        RAY[kind]
        if model is None
        else {name: model.openapi_types[own] for own, name in model.attribute_map.items()}
    )
    if not isinstance(value, dict):
        return [f"{at} is no {kind}"]
    found = [f"{at}.{name} is no field of {kind}" for name in value if name not in fields]
    if model is not None:
        known = {own: value[name] for own, name in model.attribute_map.items() if name in value}
        try:
            model(**known)  # it refuses what lacks a required field
        except ValueError as refused:
            found.append(f"{at}: {refused}")
    return found + [
        each
        for name, one in value.items()
        if name in fields
        for each in problems(one, fields[name], f"{at}.{name}")
    ]


def documents() -> list[dict[str, Any]]:
    return [each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]


def cluster() -> dict[str, Any]:
    (found,) = (each for each in documents() if each["kind"] == "RayCluster")
    return found


def test_every_object_has_the_fields_of_its_kind() -> None:
    assert {each["kind"] for each in documents()} == set(KINDS)
    for each in documents():
        assert problems(each, KINDS[each["kind"]], each["kind"]) == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"rayVersions": "2"}, "no field of RayClusterSpec"),
        ({"headGroupSpec": {"rayStartParams": {"num-cpus": 0}}}, "not of type str"),
        ({"workerGroupSpecs": [{"template": {"spec": {"container": []}}}]}, "no field of V1PodSpec"),
        ({"workerGroupSpecs": [{"template": {"spec": {}}}]}, "containers"),
    ],
)
def test_a_manifest_that_is_wrong_is_found(broken: dict[str, Any], said: str) -> None:
    assert said in " ".join(problems({"spec": broken}, "RayCluster"))


def test_keys_stand_once_and_names_that_are_used_are_there() -> None:
    class Once(yaml.SafeLoader):
        """Refuses a key that stands twice, which YAML forbids and most readers take."""

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
        keys = [loader.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {keys} {node.start_mark}"
        return loader.construct_mapping(node, deep=True)

    Once.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    for path in FOLDER.glob("*.yaml"):
        list(yaml.load_all(path.read_text(), Once))
        assert "\t" not in path.read_text()
    made = {(each["kind"], each["metadata"]["name"]) for each in documents()}
    spec = cluster()["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        volumes = {each["name"] for each in pod["volumes"]}
        for volume in pod["volumes"]:
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in made
        for container in pod["containers"]:
            assert {each["name"] for each in container["volumeMounts"]} <= volumes
            for each in container["envFrom"]:
                assert ("Secret", each["secretRef"]["name"]) in made
    assert {each["metadata"].get("namespace", "handtools") for each in documents()} == {"handtools"}


def test_workers_have_slots_and_versions_are_those_of_the_package() -> None:
    spec = cluster()["spec"]
    (workers,) = spec["workerGroupSpecs"]
    # As the shell that starts Ray reads it.
    assert json.loads(json.loads(workers["rayStartParams"]["resources"])) == {SLOT_RESOURCE: 400}
    images = {
        each["image"]
        for group in (spec["headGroupSpec"], workers)
        for each in group["template"]["spec"]["containers"]
    }
    assert images == {f"handtools-ray:{handtools.__version__}"}
    dockerfile = (FOLDER / "Dockerfile").read_text()
    assert f"rayproject/ray:{spec['rayVersion']}-" in dockerfile
    assert f"=={handtools.__version__}'" in dockerfile
    import ray

    assert spec["rayVersion"] == ray.__version__
