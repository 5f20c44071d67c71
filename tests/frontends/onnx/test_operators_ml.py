"""Models of numbers of the domain ``ai.onnx.ml``, against ONNX's own evaluator."""

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.support.onnx_models import Array
from tests.support.onnx_nodes import check, floats, refusal, run

ML = "ai.onnx.ml"
X = floats(6, 4)


def test_features_are_chosen() -> None:
    check("ArrayFeatureExtractor", X, np.array([3, 0, 3]), domain=ML)
    check("ArrayFeatureExtractor", X[0], np.array([1, 2]), domain=ML)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_normalised(norm: str) -> None:
    x = X.copy()
    x[2] = 0

    check("Normalizer", x, norm=norm, domain=ML)


def test_features_are_scaled_cut_and_replaced() -> None:
    holes = X.copy()
    holes[1, 2] = holes[4, 0] = np.nan
    whole = np.array([[1, 0], [0, 5]])

    check("Scaler", X, offset=[1.0, 2, 3, 4], scale=[0.5], domain=ML)
    check("Binarizer", X, threshold=0.25, domain=ML)
    values = [1.0, 2.0, 3.0, 4.0]
    nan = float("nan")
    check("Imputer", holes, imputed_value_floats=values, replaced_value_float=nan, domain=ML)
    check("Imputer", whole, imputed_value_int64s=[7], replaced_value_int64=0, domain=ML)


def test_features_are_joined() -> None:
    y = floats(6, 2)
    shapes = {0: ("n", 4), 1: ("n", 2)}

    check("FeatureVectorizer", X, y, inputdimensions=[3, 4], shapes=shapes, domain=ML)


def test_categories_become_ones() -> None:
    check("OneHotEncoder", np.array([3, 1, 4, 9]), cats_int64s=[1, 3, 4], domain=ML, zeros=1)


def test_keys_become_values() -> None:
    x = np.array([5, 1, 9, 2, 1])
    check(
        "LabelEncoder",
        *(x,),
        keys_int64s=[5, 2, 1],
        values_floats=[0.5, 1.5, 2.5],
        default_float=-3.0,
        domain=ML,
    )
    whole = run(
        "LabelEncoder",
        np.array([0.5, np.nan, 2.0], np.float32),
        keys_floats=[2.0, float("nan"), 0.5],
        values_int64s=[7, 8, 9],
        domain=ML,
    )
    assert whole.tolist() == [9, 8, 7]
    tables = {"keys_tensor": [3, 1], "values_tensor": [30, 10], "default_tensor": [-1]}
    proto = {name: numpy_helper.from_array(np.array(t, np.int16)) for name, t in tables.items()}
    found = run("LabelEncoder", np.array([1, 2, 3], np.int16), domain=ML, **proto)
    np.testing.assert_array_equal(found, np.array([10, -1, 30], np.int16), strict=True)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_models(post: str) -> None:
    weights, more = floats(3 * 4).tolist(), [0.1, 0.2, 0.3]
    how: dict[str, Any] = {"intercepts": more, "coefficients": weights, "domain": ML}
    shapes = {0: ("n", 4)}

    check(
        "LinearClassifier",
        X,
        classlabels_ints=[7, 8, 9],
        post_transform=post,
        outputs=("label", "scores"),
        shapes=shapes,
        **how,
    )
    if post == "NONE":
        check("LinearRegressor", X, targets=3, shapes=shapes, **how)


def test_one_score_is_that_of_the_second_class() -> None:
    check(
        "LinearClassifier",
        X,
        classlabels_ints=[4, 5],
        coefficients=floats(4).tolist(),
        intercepts=[0.25],
        post_transform="LOGISTIC",
        outputs=("label", "scores"),
        shapes={0: ("n", 4)},
        domain=ML,
    )


# --- trees ------------------------------------------------------------------------------


def forest(modes: list[str], trees: int = 3, depth: int = 3) -> dict[str, Any]:
    """Full trees of random tests: node `k` is followed by ``2k + 1`` and ``2k + 2``."""
    source = np.random.default_rng(len(modes))
    inner, every = 2**depth - 1, 2 ** (depth + 1) - 1
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    names.append("missing_value_tracks_true")
    tables: dict[str, list[Any]] = {name: [] for name in names}
    for tree in range(trees):
        for k in range(every):
            mode = f"BRANCH_{modes[k % len(modes)]}" if k < inner else "LEAF"
            row = (tree, k, int(source.integers(4)), float(np.float32(source.normal() / 2)), mode)
            below = (2 * k + 1, 2 * k + 2) if k < inner else (0, 0)
            for name, cell in zip(tables, (*row, *below, int(source.integers(2))), strict=True):
                tables[name].append(cell)
    return {f"nodes_{name}": column for name, column in tables.items()}


def leaves(attrs: dict[str, Any], kind: str, targets: int) -> dict[str, Any]:
    """A weight for each leaf, for one target after the other."""
    found = [k for k, mode in enumerate(attrs["nodes_modes"]) if mode == "LEAF"]
    weights = np.random.default_rng(1).normal(size=len(found)).astype(np.float32)
    return {
        f"{kind}_treeids": [attrs["nodes_treeids"][k] for k in found],
        f"{kind}_nodeids": [attrs["nodes_nodeids"][k] for k in found],
        f"{kind}_ids": [k % targets for k in range(len(found))],
        f"{kind}_weights": weights.tolist(),
    }


def samples() -> Array:
    x = floats(20, 4, seed=5)
    x[3, 1] = x[7, 2] = np.nan
    return x


@pytest.mark.parametrize("modes", [["LEQ"], ["LT", "GT", "GTE"]])
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_give_numbers(modes: list[str], how: str) -> None:
    attrs = forest(modes)
    attrs |= leaves(attrs, "target", 2)

    check(
        "TreeEnsembleRegressor",
        samples(),
        n_targets=2,
        aggregate_function=how,
        base_values=[0.5, -1.0],
        shapes={0: ("n", 4)},
        domain=ML,
        **attrs,
    )


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("classes", [1, 3])
def test_trees_give_classes(post: str, classes: int) -> None:
    attrs = forest(["LEQ"])
    attrs |= leaves(attrs, "class", classes)

    check(
        "TreeEnsembleClassifier",
        samples(),
        classlabels_int64s=[4, 6] if classes == 1 else [4, 6, 5],
        post_transform=post,
        outputs=("label", "scores"),
        shapes={0: ("n", 4)},
        domain=ML,
        **attrs,
    )


def ensemble(**other: Any) -> dict[str, Any]:
    """A tree that asks whether feature 0 is 1 or 2, and then whether feature 1 is at most 0."""
    return {
        "nodes_modes": helper.make_tensor("modes", 2, (2,), [6, 0]),
        "nodes_splits": numpy_helper.from_array(np.zeros(2, np.float32)),
        "membership_values": numpy_helper.from_array(np.array([1, 2, np.nan], np.float32)),
        "nodes_featureids": [0, 1],
        "nodes_truenodeids": [1, 0],
        "nodes_trueleafs": [0, 1],
        "nodes_falsenodeids": [2, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 1, 0],
        "leaf_weights": numpy_helper.from_array(np.array([10, 20, 30], np.float32)),
        "tree_roots": [0],
        "n_targets": 2,
        "domain": ML,
        **other,
    }


def test_trees_ask_for_members_of_sets() -> None:
    x = np.array([[1, -1], [2, 1], [3, 0], [2, 0]], np.float32)

    check("TreeEnsemble", x, shapes={0: ("n", 2)}, **ensemble())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nodes_truenodeids": [0, 0]}, "its trees have more than 64 levels"),
        ({"nodes_truenodeids": [9, 0]}, "a tree refers to an absent node"),
        ({"tree_roots": [-1]}, "a tree refers to an absent node"),
        ({"nodes_featureids": [0, 2]}, "its trees ask for feature 2, there are 2"),
        ({"nodes_featureids": [0]}, "its tables of nodes have [4, 5, 5, 5, 5] rows, need 5"),
        ({"leaf_targetids": [0, 2, 0]}, "a leaf has a weight for target 2, which does not exist"),
        ({"n_targets": 1 << 40}, f"it has {1 << 40} targets, needs 1 to 65536"),
        ({"membership_values": None}, "it has no members of the sets of its nodes"),
        ({"post_transform": 4}, "its post_transform is 4, needs 0 to 2"),
    ],
)
def test_trees_that_are_none_are_refused(change: dict[str, Any], reason: str) -> None:
    attrs = {name: value for name, value in ensemble(**change).items() if value is not None}

    assert (
        refusal("TreeEnsemble", np.zeros((3, 2), np.float32), shapes={0: ("n", 2)}, **attrs)
        == reason
    )


def test_strings_are_refused() -> None:
    attrs = {"classlabels_strings": ["a", "b"], "coefficients": [1.0] * 8}

    assert refusal("LinearClassifier", X, domain=ML, **attrs) == "its labels are strings"
