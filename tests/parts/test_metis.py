from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import problems
from plap.errors import InputError
from plap.graph import Graph
from plap.parts import metis, partition


def cut_edges(graph: Graph, part: Tensor) -> int:
    source, target = graph.edge_index
    return int((part[source] != part[target]).sum()) // 2


@pytest.mark.parametrize("parts", [2, 5, 20, 60])
def test_parts_are_balanced_and_cut_few_edges(parts: int) -> None:
    graph = problems.grid(30, 40)
    part = partition(graph, parts, cache=False)
    sizes = part.bincount(minlength=parts)
    assert part.dtype == torch.int64
    assert sizes.shape == (parts,)
    assert int(sizes.max()) <= 1.1 * 1200 / parts
    shuffled = part[torch.randperm(1200, generator=torch.Generator().manual_seed(0))]
    assert cut_edges(graph, part) < 0.6 * cut_edges(graph, shuffled)


@given(problems.graphs_with_features(max_nodes=12), st.data())
def test_no_part_is_empty_on_any_graph(problem: problems.Problem, data: st.DataObject) -> None:
    graph = problem.graph
    parts = data.draw(st.integers(1, graph.num_nodes))
    part = partition(graph, parts, cache=False)
    assert part.shape == (graph.num_nodes,)
    assert part.unique().tolist() == list(range(parts))


def test_repeats_itself_and_depends_on_the_seed() -> None:
    graph = problems.random_graph(300, 0.03, seed=0)
    first = partition(graph, 6, 1, cache=False)
    assert torch.equal(first, partition(graph, 6, 1, cache=False))
    assert not torch.equal(first, partition(graph, 6, 2, cache=False))


def test_weights_and_self_loops_play_no_role(tmp_path: Path) -> None:
    plain = problems.grid(6, 6)
    pairs = plain.edge_index.T.numpy()
    loops = np.stack([np.arange(36), np.arange(36)], 1)
    weights = np.random.default_rng(0).uniform(1, 2, pairs.shape[0] + 36)
    heavy = Graph.from_edges(np.concatenate([pairs, loops]), weights, 36, self_loops="keep")
    assert torch.equal(partition(plain, 4, cache=tmp_path), partition(heavy, 4, cache=False))
    partition(heavy, 4, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


class Counted:
    """METIS, counting how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        original = metis._cut

        def cut(*arguments: Any) -> np.ndarray:
            self.calls += 1
            return original(*arguments)

        monkeypatch.setattr(metis, "_cut", cut)


def test_is_kept_on_disk_by_structure_number_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    graph, other = problems.grid(6, 6), problems.grid(4, 9)
    first = partition(graph, 4, cache=tmp_path / "new" / "folder")
    for _ in range(2):
        assert torch.equal(partition(problems.grid(6, 6), 4, cache=tmp_path / "new" / "folder"), first)
    assert counted.calls == 1
    partition(graph, 3, cache=tmp_path / "new" / "folder")
    partition(graph, 4, 1, cache=tmp_path / "new" / "folder")
    partition(other, 4, cache=tmp_path / "new" / "folder")
    assert counted.calls == 4
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 4


@pytest.mark.parametrize("damage", ["empty", "cut", "longer", "flipped", "foreign", "folder"])
def test_a_damaged_file_is_as_good_as_none(damage: str, tmp_path: Path) -> None:
    graph = problems.grid(6, 6)
    expected = partition(graph, 4, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(
            {
                "empty": b"",
                "cut": content[:-4],
                "longer": content + bytes(4),
                "flipped": content[:40] + bytes([content[40] ^ 1]) + content[41:],
                "foreign": b"not a partition",
            }[damage]
        )
    assert torch.equal(partition(graph, 4, cache=tmp_path), expected)
    if damage != "folder":
        assert file.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    graph = problems.grid(6, 6)
    assert torch.equal(partition(graph, 4), partition(graph, 4, cache=False))
    with pytest.raises(InputError, match=r"cache: .*file cannot be used as a folder"):
        partition(graph, 4, cache=blocked)


def test_the_user_s_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    partition(problems.grid(6, 6), 4)
    (file,) = (tmp_path / "plap" / "partitions").iterdir()
    assert file.suffix == ".partition"


def test_without_pymetis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(InputError, match=r"needs the package pymetis: pip install 'plap\[scale\]'"):
        partition(problems.grid(), 2)


def test_refuses() -> None:
    graph = problems.path(5)
    with pytest.raises(InputError, match="parts must be an integer of 1 or more, not 0"):
        partition(graph, 0)
    with pytest.raises(InputError, match="parts is 6, but the graph has only 5 nodes"):
        partition(graph, 6)
    with pytest.raises(InputError, match="seed must be"):
        partition(graph, 2, seed=-1)
    with pytest.raises(InputError, match=r"graph must be a plap\.Graph, not Tensor"):
        partition(graph.edge_index, 2)  # type: ignore[arg-type]
