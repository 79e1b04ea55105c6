"""PyG's explainers on p-Laplacian layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.explain import Explainer, Explanation, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

import plap
import problems
from plap.nn import PGNN, DeepPGNN, GCNPlusPGNN, JKNetPlusPGNN, PLaplacianConv
from plap.nn.plaplacian_conv import masked_graph
from plap.penalties import MCP, Welsch

STAR = torch.tensor([[0, 1, 0, 2, 0, 3, 4, 5], [1, 0, 2, 0, 3, 0, 5, 4]])
"""Node 0 with three neighbours, and an edge far from it."""
SETTINGS = ({"p": 1.5}, {"p": 2.0}, {"p": 1.0}, {"penalty": MCP(3.0)}, {"penalty": Welsch(2.0)})


def with_mask(module: torch.nn.Module, x: Tensor, mask: Tensor) -> Tensor:
    set_masks(module, mask, STAR, apply_sigmoid=False)
    result: Tensor = module(x, STAR)
    clear_masks(module)
    return result


@pytest.mark.parametrize("options", SETTINGS, ids=repr)
@pytest.mark.parametrize("unit", [1.0, "auto"])
def test_masks_go_from_no_edges_to_all_edges(options: dict[str, Any], unit: Any) -> None:
    x = problems.features(6, 4, seed=1)
    conv = PLaplacianConv(4, 2, mu=0.1, K=3, unit=unit, **options).double()
    whole, alone = conv(x, STAR), conv.lin(x)
    torch.testing.assert_close(with_mask(conv, x, torch.ones(8).double()), whole)
    torch.testing.assert_close(with_mask(conv, x, torch.zeros(8).double()), alone, rtol=0, atol=1e-4)
    torch.testing.assert_close(conv(x, STAR), whole)


def test_a_mask_has_the_gradient_of_its_differences() -> None:
    x = problems.features(6, 4, seed=2)
    conv = PLaplacianConv(4, 2, p=1.5, mu=0.1, K=3).double()
    graph = plap.Graph.from_edge_index(STAR)
    mask = torch.full((8,), 0.6, dtype=torch.float64) + torch.arange(8) / 50
    assert torch.autograd.gradcheck(lambda m: with_mask(conv, x, m), mask.requires_grad_())
    torch.testing.assert_close(masked_graph(graph, STAR, mask).degree, graph.degree, rtol=0, atol=1e-6)


def star_features() -> Tensor:
    """Node 0 has nothing of its own; its neighbour 1 says class 0 loudly, 2 and 3 whisper class 1."""
    x = torch.zeros(6, 2)
    x[1, 0], x[2, 1], x[3, 1] = 4.0, 0.5, 0.5
    return x


def certain(module: torch.nn.Module) -> torch.nn.Module:
    """Weights that hand features through, so that what an explainer should find is known."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.eye(2) if parameter.ndim == 2 else torch.zeros(2))
            if "norms" in name and name.endswith("weight"):
                parameter.fill_(1.0)
    return module.eval()


MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "PLaplacianConv": lambda: PLaplacianConv(2, 2, p=2.0, mu=0.5, K=2),
    "PGNN": lambda: PGNN(2, 2, 2, p=2.0, mu=0.5, K=2),
    "GCNPlusPGNN": lambda: GCNPlusPGNN(2, 2, 2, p=2.0, mu=0.5, K=2),
    "DeepPGNN": lambda: DeepPGNN(2, 2, 2, num_layers=2, p=2.0, mu=0.5, K=1, norm=None),
}


@pytest.mark.parametrize("name", MODELS)
def test_gnnexplainer_finds_the_neighbour_that_made_the_prediction(name: str) -> None:
    torch.manual_seed(0)
    model = certain(MODELS[name]())
    before = {key: value.clone() for key, value in model.state_dict().items()}
    explainer = Explainer(
        model,
        GNNExplainer(epochs=60, lr=0.1, edge_size=0.02, edge_ent=0.0),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    found = explainer(star_features(), STAR, index=0)
    assert isinstance(found, Explanation)
    mask = (found.edge_mask[0::2] + found.edge_mask[1::2]) / 2
    assert int(mask.argmax()) == 0
    assert float(mask[0]) > 2 * float(mask[1:3].max())
    assert float(mask[3]) == 0, "an edge that node 0 cannot see"
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[key], before[key]) for key in before)
    assert not any(getattr(module, "explain", None) for module in model.modules())


@pytest.mark.parametrize("kind", [GCNPlusPGNN, JKNetPlusPGNN])
def test_masks_weaken_every_layer_of_a_hybrid(kind: Any) -> None:
    torch.manual_seed(0)
    x = problems.features(6, 4, seed=1)
    model = kind(4, 4, 2, p=1.5, mu=0.1, K=3).double().eval()
    whole, alone = model(x, STAR), model(x, plap.Graph.from_edges([], num_nodes=6))
    torch.testing.assert_close(with_mask(model, x, torch.ones(8).double()), whole)
    torch.testing.assert_close(with_mask(model, x, torch.zeros(8).double()), alone, rtol=0, atol=1e-4)
    mask = torch.full((8,), 0.6, dtype=torch.float64) + torch.arange(8) / 50
    assert torch.autograd.gradcheck(lambda m: with_mask(model, x, m), mask.requires_grad_())
    torch.testing.assert_close(model(x, STAR), whole)


def test_an_explainer_goes_through_jumping_knowledge() -> None:
    torch.manual_seed(0)
    explainer = Explainer(
        JKNetPlusPGNN(2, 4, 2, p=2.0, mu=0.5, K=1, steps=1),
        GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    mask = explainer(star_features(), STAR, index=0).edge_mask
    assert bool((mask[:6] > 0).all())
    assert float(mask[6:].sum()) == 0, "an edge that node 0 cannot see"


def test_masks_need_an_edge_index() -> None:
    conv = PLaplacianConv(2, 2)
    set_masks(conv, torch.ones(8), STAR, apply_sigmoid=False)
    with pytest.raises(plap.InputError, match="needs the edges as an edge_index"):
        conv(star_features(), plap.Graph.from_edge_index(STAR))
    with pytest.raises(plap.InputError, match=r"the edge mask has shape \[8\] for 4 edges"):
        conv(star_features(), STAR[:, :4])
