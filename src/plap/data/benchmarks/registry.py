"""The one table of benchmarks: where each set's files lie, how they are read, what was published of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from plap.data.benchmarks.benchmark import Benchmark, RawFile, Statistics
from plap.data.benchmarks.checksums import KNOWN
from plap.data.benchmarks.readers import read_attacked, read_filtered, read_ogb, read_ppi, read_pyg
from plap.data.dataset import DatasetName
from plap.errors import InputError

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_SHCHUR = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
_GEOM_GCN_2021 = (
    "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
)
_PRO_GNN = "https://raw.githubusercontent.com/ChandlerBang/Pro-GNN/master"
_META_ATTACK = "https://raw.githubusercontent.com/danielzuegner/gnn-meta-attack/master/data"
_YANDEX = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_PPI = "https://data.dgl.ai/dataset/ppi.zip"
_ARXIV = "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


def _files(folder: str, urls: dict[str, str | None]) -> tuple[RawFile, ...]:
    known = KNOWN.get(folder, {})
    return tuple(RawFile(f"{folder}/{name}", known.get(name), url) for name, url in urls.items())


def _planetoid(name: str, pyg_name: str, statistics: Statistics) -> Benchmark:
    names = [f"ind.{name}.{part}" for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")]
    return Benchmark(
        name,
        pyg_name,
        _files(f"Planetoid/{pyg_name}/raw", {file: f"{_PLANETOID}/{file}" for file in names}),
        statistics,
        "kimiyoung/planetoid",
        read_pyg,
        folder="Planetoid",
        pyg_class="Planetoid",
        pyg_name=pyg_name,
        pickled=True,
    )


def _shchur(name: str, pyg_class: str, pyg_name: str, file: str, statistics: Statistics) -> Benchmark:
    return Benchmark(
        name,
        pyg_name,
        _files(f"{pyg_class}/{pyg_name}/raw", {file: f"{_SHCHUR}/{file}"}),
        statistics,
        "shchur/gnn-benchmark",
        read_pyg,
        folder=pyg_class,
        pyg_class=pyg_class,
        pyg_name=pyg_name,
        notes=("Positive feature values were set to 1, as PyG does.",),
    )


def _geom_gcn(
    name: str,
    pyg_class: str,
    raw: str,
    statistics: Statistics,
    *,
    stem: str | None = None,
    folder: str | None = None,
    url: str = _GEOM_GCN,
    label: str | None = None,
    variant: str = "",
    notes: Iterable[str] = (),
) -> Benchmark:
    stem = name if stem is None else stem
    urls: dict[str, str | None] = {
        file: f"{url}/new_data/{stem}/{file}"
        for file in ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    }
    splits = [f"{stem}_split_0.6_0.2_{k}.npz" for k in range(10)]
    urls |= {file: f"{url}/splits/{file}" for file in splits}
    return Benchmark(
        name,
        name.capitalize() if label is None else label,
        _files(raw, urls),
        statistics,
        "graphdml-uiuc-jlu/geom-gcn",
        read_pyg,
        variant=variant,
        folder=pyg_class if folder is None else folder,
        pyg_class=pyg_class,
        pyg_name=None if pyg_class == "Actor" else stem,
        notes=tuple(notes),
    )


def _heterophilous(
    name: str, statistics: Statistics, *, label: str | None = None, filtered: bool = False
) -> Benchmark:
    stem = name.replace("-", "_")
    folder = "PlatonovFiltered" if filtered else f"HeterophilousGraphDataset/{stem}/raw"
    return Benchmark(
        name,
        name.capitalize() if label is None else label,
        _files(folder, {f"{stem}.npz": f"{_YANDEX}/{stem}.npz"}),
        statistics,
        "yandex-research/heterophilous-graphs",
        read_filtered if filtered else read_pyg,
        variant="filtered" if filtered else "",
        folder=folder.split("/", maxsplit=1)[0],
        pyg_class="HeterophilousGraphDataset",
        pyg_name=stem,
        notes=("Nodes that occur twice in the original were removed by Platonov et al.",) if filtered else (),
    )


def _ppi() -> Benchmark:
    names = [
        f"{part}_{file}"
        for part in ("train", "valid", "test")
        for file in ("feats.npy", "graph_id.npy", "graph.json", "labels.npy")
    ]
    return Benchmark(
        "ppi",
        "PPI",
        _files("PPI/raw", dict.fromkeys(names)),
        Statistics(56944, 793632, 50, 121),
        "williamleif/GraphSAGE",
        read_ppi,
        folder="PPI",
        archive=_PPI,
        notes=("The disjoint union of 24 graphs: 20 for training, 2 for validation, 2 for testing.",),
    )


def _arxiv() -> Benchmark:
    raw = [f"{name}.csv.gz" for name in ("edge", "node-feat", "node-label")]
    split = [f"{name}.csv.gz" for name in ("train", "valid", "test")]
    return Benchmark(
        "ogbn-arxiv",
        "ogbn-arxiv",
        _files("OGB/ogbn_arxiv/raw", dict.fromkeys(raw))
        + _files("OGB/ogbn_arxiv/split/time", dict.fromkeys(split)),
        Statistics(169343, 1157799, 128, 40),
        "snap-stanford/ogb",
        read_ogb,
        folder="OGB/ogbn_arxiv",
        archive=_ARXIV,
    )


def _metattack(label: str, statistics: Statistics | None = None) -> Benchmark:
    """Every node is a target: 5 to 25 % of the edges were changed before training."""
    stem = label.lower()
    matrices = {rate: f"{stem}_meta_adj_{rate}.npz" for rate in (0.05, 0.1, 0.15, 0.2, 0.25)}
    urls = {file: f"{_PRO_GNN}/meta/{file}" for file in matrices.values()}
    return _attacked(label, "metattack", None, matrices, urls, statistics)


def _nettack(label: str, statistics: Statistics | None = None) -> Benchmark:
    """Some test nodes are targets, with 1 to 5 changes each: only they are tested."""
    stem = label.lower()
    matrices = {rate: f"{stem}_nettack_adj_{rate}.npz" for rate in (1.0, 2.0, 3.0, 4.0, 5.0)}
    targets = f"{stem}_nettacked_nodes.json"
    urls = {file: f"{_PRO_GNN}/nettack/{file}" for file in (targets, *matrices.values())}
    return _attacked(label, "nettack", targets, matrices, urls, statistics)


def _attacked(
    label: str, attack: str, targets: str | None, matrices: dict[float, str], urls: dict[str, str],
    statistics: Statistics | None,
) -> Benchmark:  # fmt: skip
    stem, name = label.lower(), f"{label.lower()}-{attack}"
    folder, clean, splits = f"Adversarial/{stem}", f"{stem}.npz", f"{stem}_prognn_splits.json"
    known: dict[str, str | None] = {
        clean: None if stem == "pubmed" else f"{_META_ATTACK}/{clean}",
        splits: f"{_PRO_GNN}/splits/{splits}",
        **urls,
    }
    whole = Benchmark(
        name,
        label,
        _files(folder, known),
        statistics,
        "ChandlerBang/Pro-GNN",
        partial(read_attacked, stem=stem, targets=targets),
        variant=attack,
        folder=folder,
        notes=("The largest connected component of the graph before the attack.",),
    )

    def at_rate(rate: float, matrix: str | None) -> Benchmark:
        return replace(
            whole,
            name=f"{name}:rate={rate:g}",
            files=_files(folder, {file: known[file] for file in (clean, splits, targets, matrix) if file}),
            statistics=statistics if matrix is None else None,
            reader=partial(read_attacked, stem=stem, matrix=matrix, targets=targets),
        )

    attacked = {rate: at_rate(rate, matrix) for rate, matrix in matrices.items()}
    return replace(whole, rates={0.0: at_rate(0.0, None), **attacked})


_ROWS = (
    _planetoid("cora", "Cora", Statistics(2708, 5278, 1433, 7)),
    _planetoid("citeseer", "CiteSeer", Statistics(3327, 4552, 3703, 6)),
    _planetoid("pubmed", "PubMed", Statistics(19717, 44324, 500, 3)),
    _shchur(
        "computers",
        "Amazon",
        "Computers",
        "amazon_electronics_computers.npz",
        Statistics(13752, 245861, 767, 10),
    ),
    _shchur("photo", "Amazon", "Photo", "amazon_electronics_photo.npz", Statistics(7650, 119081, 745, 8)),
    _shchur("cs", "Coauthor", "CS", "ms_academic_cs.npz", Statistics(18333, 81894, 6805, 15)),
    _shchur("physics", "Coauthor", "Physics", "ms_academic_phy.npz", Statistics(34493, 247962, 8415, 5)),
    _geom_gcn(
        "chameleon",
        "WikipediaNetwork",
        "WikipediaNetwork/chameleon/geom_gcn/raw",
        Statistics(2277, 31371, 2325, 5),
    ),
    _geom_gcn(
        "squirrel",
        "WikipediaNetwork",
        "WikipediaNetwork/squirrel/geom_gcn/raw",
        Statistics(5201, 198353, 2089, 5),
    ),
    _geom_gcn("actor", "Actor", "Actor/raw", Statistics(7600, 26659, 932, 5), stem="film"),
    _geom_gcn("wisconsin", "WebKB", "WebKB/wisconsin/raw", Statistics(251, 450, 1703, 5)),
    _geom_gcn("texas", "WebKB", "WebKB/texas/raw", Statistics(183, 279, 1703, 5)),
    _geom_gcn("cornell", "WebKB", "WebKB/cornell/raw", Statistics(183, 277, 1703, 5)),
    _geom_gcn(
        "cornell-2021",
        "WebKB",
        "WebKB_before_July_2022/cornell/raw",
        Statistics(183, 277, 1703, 5),
        stem="cornell",
        folder="WebKB_before_July_2022",
        url=_GEOM_GCN_2021,
        label="Cornell",
        variant="before July 2022",
        notes=("Published until July 2022 with the features and labels of Texas, as the paper used it.",),
    ),
    _heterophilous("roman-empire", Statistics(22662, 32927, 300, 18)),
    _heterophilous("amazon-ratings", Statistics(24492, 93050, 300, 5)),
    _heterophilous("minesweeper", Statistics(10000, 39402, 7, 2)),
    _heterophilous("tolokers", Statistics(11758, 519000, 10, 2)),
    _heterophilous("questions", Statistics(48921, 153540, 301, 2)),
    _heterophilous("chameleon-filtered", Statistics(890, 8854, 2325, 5), label="Chameleon", filtered=True),
    _heterophilous("squirrel-filtered", Statistics(2223, 46998, 2089, 5), label="Squirrel", filtered=True),
    _ppi(),
    _arxiv(),
    _metattack("Cora", Statistics(2485, 5069, 1433, 7)),
    _metattack("CiteSeer"),
    _metattack("PubMed"),
    _nettack("Cora", Statistics(2485, 5069, 1433, 7)),
    _nettack("CiteSeer"),
    _nettack("PubMed"),
)

BENCHMARKS: dict[str, Benchmark] = {row.name: row for row in _ROWS}


class UnknownBenchmarkError(InputError):
    """No benchmark has this name."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"there is no benchmark named {name!r}: {hint}")
        self.hint = hint


def find(name: str) -> Benchmark:
    """Return the registry's row of that name, upper or lower case, with ``_`` for ``-`` if need be.

    Examples
    --------
    >>> find("Roman_Empire").statistics.nodes
    22662
    >>> [file.path for file in find("cora-metattack:rate=0.25").files][-1]
    'Adversarial/cora/cora_meta_adj_0.25.npz'
    """
    asked = DatasetName.parse(name)
    key = asked.base.lower().replace("_", "-")
    if key in BENCHMARKS and (BENCHMARKS[key].rates or not asked.parameters):
        return _at_rate(BENCHMARKS[key], asked) if asked.parameters else BENCHMARKS[key]
    key = str(asked.with_base(key))
    close = difflib.get_close_matches(key, [*BENCHMARKS, "csbm"], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`plap data list` shows the benchmarks"
    raise UnknownBenchmarkError(name, hint)


def _at_rate(benchmark: Benchmark, asked: DatasetName) -> Benchmark:
    """The benchmark at the rate that a name such as ``cora-metattack:rate=0.25`` asks for."""
    for key, _ in asked.parameters:
        if key != "rate":
            raise InputError(
                f"{benchmark.name} has no parameter {key!r}: only rate, the strength of the attack"
            )
    try:
        (given,) = (float(value) for _, value in asked.parameters)
    except ValueError:
        given = float("nan")
    if given not in benchmark.rates:
        known = ", ".join(f"{rate:g}" for rate in benchmark.rates)
        written = ",".join(value for _, value in asked.parameters)
        raise InputError(f"{benchmark.name}: rate must be one of {known}, not {written!r}")
    return benchmark.rates[given]
