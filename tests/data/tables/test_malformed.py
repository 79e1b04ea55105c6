"""More than 200 malformed graphs through the command line: exit code 2, one sentence, no traceback."""

from __future__ import annotations

import gzip
import io
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from plap.cli import main


@dataclass(frozen=True)
class Case:
    """Files of a folder, what is inspected of it, and a piece of the sentence that refuses it."""

    sentence: str
    files: dict[str, bytes] = field(default_factory=dict)
    graph: str = "."
    label: str = ""


EDGES = "source,target,weight\na,b,1\nb,c,2\nc,d,0.5\n"
NODES = "id,label,age,size\na,u,1,2\nb,v,3,4\nc,u,5,6\nd,v,7,8\n"
GOOD = {"edges.csv": EDGES.encode(), "nodes.csv": NODES.encode()}


def tables(sentence: str, label: str = "", **texts: str | bytes) -> Case:
    """The good folder with some files replaced; ``edges_csv`` stands for edges.csv."""
    named = {key.replace("__", ".").replace("_", ".", 1): value for key, value in texts.items()}
    files = {name: value.encode() if isinstance(value, str) else value for name, value in named.items()}
    return Case(sentence, GOOD | files, label=label)


def parquet(**columns: Any) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def archive(sentence: str, content: bytes | None = None, **arrays: Any) -> Case:
    return Case(sentence, {"g.npz": npz(**arrays) if content is None else content}, "g.npz")


PAIRS = np.array([[0, 1], [1, 2]])
E2 = {"source": ["a", "b"], "target": ["b", "a"]}
N2 = {"id": ["a", "b"]}


def of_parquet(sentence: str, edges: dict[str, Any] = E2, nodes: dict[str, Any] = N2) -> Case:
    return Case(sentence, {"edges.parquet": parquet(**edges), "nodes.parquet": parquet(**nodes)})


EDGE_CASES = [
    tables("edges.csv: the file is empty", edges_csv=""),
    tables("edges.csv: the first line must name the columns", edges_csv="\n\n"),
    tables("edges.csv: the first line must name the columns", edges_csv="   \n"),
    tables("edges.csv: no column holds the source of an edge", edges_csv="a,b\nb,c\n"),
    tables("edges.csv: no column holds the target of an edge", edges_csv="source,sink\na,b\n"),
    tables("edges.csv: no column holds the target of an edge", edges_csv="source\na\n"),
    tables(
        "edges.csv, line 1: the column 'source' is there twice", edges_csv="source,source,target\na,b,c\n"
    ),
    tables(
        "edges.csv, line 2, column 'target': the node 'zed' is not in", edges_csv="source,target\na,zed\n"
    ),
    tables("edges.csv, line 3, column 'source': the node 'A' is not", edges_csv="source,target\na,b\nA,b\n"),
    tables("line 2, column 'source': the node '1' is not in", edges_csv="source,target\n1,2\n"),
    tables("line 3, column 'target': the id of a node is missing", edges_csv="source,target\na,b\na,\n"),
    tables("line 2, column 'source': the id of a node is missing", edges_csv="source,target\n,b\n"),
    tables("line 2, column 'source': the id of a node is missing", edges_csv='source,target\n"",b\n'),
    tables("line 3, column 'target': the id of a node is missing", edges_csv="source,target\na,b\na\n"),
    tables("line 4, column 'target': the id of a node is missing", edges_csv="source,target\na,b\n\nb,  \n"),
    tables("line 2: 3 cells under 2 columns", edges_csv="source,target\na,b,c\n"),
    tables("line 4: 3 cells under 2 columns", edges_csv="source,target\na,b\n\nb,c,d\n"),
    tables("edges.csv", label="open quote", edges_csv='source,target\n"a,b\nb,c\n'),
    tables("line 2, column 'weight': 'heavy' is not a number", edges_csv="source,target,weight\na,b,heavy\n"),
    tables("line 2, column 'weight': a number is missing", edges_csv="source,target,weight\na,b,\n"),
    tables("line 2, column 'weight': 0 is not a positive weight", edges_csv="source,target,weight\na,b,0\n"),
    tables(
        "line 3, column 'weight': -1.5 is not a positive", edges_csv="source,target,weight\na,b,1\nb,a,-1.5\n"
    ),
    tables("line 2, column 'weight': nan is not a finite", edges_csv="source,target,weight\na,b,nan\n"),
    tables("line 2, column 'weight': inf is not a finite", edges_csv="source,target,weight\na,b,inf\n"),
    tables("line 2, column 'weight': 1e300 is too large", edges_csv="source,target,weight\na,b,1e300\n"),
    tables(
        "line 2, column 'weight': 1e-300 is not a positive", edges_csv="source,target,weight\na,b,1e-300\n"
    ),
    tables("line 2, column 'weight': '1,5' is not a number", edges_csv='source,target,weight\na,b,"1,5"\n'),
    tables("line 2, column 'w': 'x' is not a number", edges_csv="source,target,w\na,b,x\n"),
    tables("line 3: byte 0xe9 is not UTF-8", edges_csv="source,target\nä,b\n".encode() + b"caf\xe9,b\n"),
    tables("the file is damaged UTF-16", edges_csv=EDGES.encode("utf-16")[:-1]),
    tables("edges.csv, line 1: not UTF-8 text", edges_csv=b"source,target,gr\xf6s\xc3\x9fe\na,b,1\n"),
    tables(
        "edges.csv: lines end in a carriage return alone",
        label="old Mac line ends",
        edges_csv=EDGES.replace("\n", "\r"),
    ),
    tables("edges.csv", label="binary", edges_csv=bytes(range(1, 256))),
    tables("both edges.csv and edges.parquet are there", edges_parquet=parquet(**E2)),
    tables("both nodes.csv and nodes.tsv are there", nodes_tsv=NODES.replace(",", "\t")),
    tables("both edges.csv and edges.csv.gz are there", edges_csv__gz=gzip.compress(EDGES.encode())),
]
NODE_CASES = [
    tables("nodes.csv: the file is empty", nodes_csv=""),
    tables("nodes.csv: the table has no rows", nodes_csv="id,label,age\n"),
    tables("nodes.csv: the table has no rows", nodes_csv="id,label,age\n\n\n"),
    tables("nodes.csv: no column holds the id of a node", nodes_csv="key,age\na,1\n"),
    tables("nodes.csv, line 1: the column 'age' is there twice", nodes_csv="id,age,age\na,1,2\n"),
    tables("line 4, column 'id': the id 'a' is there twice", nodes_csv="id\na\nb\na\n"),
    tables("line 3, column 'id': the id 7 is there twice", nodes_csv="id\n7\n7\n"),
    tables("line 3, column 'id': the id of a node is missing", nodes_csv="id,age\na,1\n,2\n"),
    tables("line 4, column 'label': the class 'w' is seen once", nodes_csv="id,label\na,u\nb,u\nc,w\nd,u\n"),
    tables("line 2, column 'class': the class '1' is seen once", nodes_csv="id,class\na,1\nb,2\nc,2\nd,2\n"),
    tables("line 3, column 'age': 'old' is not a number", nodes_csv="id,age\na,1\nb,old\nc,3\nd,4\n"),
    tables("line 3, column 'age': a number is missing", nodes_csv="id,age\na,1\nb,\nc,3\nd,4\n"),
    tables("line 3, column 'age': a number is missing", nodes_csv="id,size,age\na,1,1\nb,1\nc,1,3\nd,1,4\n"),
    tables("line 5, column 'age': NaN is not a finite", nodes_csv="id,age\na,1\nb,2\nc,3\nd,NaN\n"),
    tables("line 2, column 'age': -inf is not a finite", nodes_csv="id,age\na,-inf\nb,2\nc,3\nd,4\n"),
    tables("line 2, column 'age': 1e39 is too large", nodes_csv="id,age\na,1e39\nb,2\nc,3\nd,4\n"),
    tables("line 3, column 'age': '0x10' is not a number", nodes_csv="id,age\na,1\nb,0x10\nc,3\nd,4\n"),
    tables("line 3, column 'age': '1 000' is not a number", nodes_csv="id,age\na,1\nb,1 000\nc,3\nd,4\n"),
    tables("line 3: 3 cells under 2 columns", nodes_csv="id,age\na,1\nb,2,3\n"),
    tables("line 3: byte 0x81 is not UTF-8", nodes_csv=b"id,label\na,u\nb,gr\x81n\n"),
    tables(
        "line 3, column 'x': 1 numbers, but the first row has 2",
        nodes_csv="id,x\na,1 2\nb,3;\nc,1 2\nd,1 2\n",
    ),
    tables("line 2, column 'x': 'q' is not a number", nodes_csv="id,x\na,1 q\nb,3 4\nc,1 2\nd,1 2\n"),
    tables("line 3, column 'x': nan is not a finite", nodes_csv="id,x\na,1 2\nb,3 nan\nc,1 2\nd,1 2\n"),
    tables("line 5, column 'x': the vector is missing", nodes_csv="id,x\na,1 2\nb,3 4\nc,1 2\nd,\n"),
    tables("not both 'x' and 'age'", nodes_csv="id,x,age\na,1 2,1\nb,3 4,1\nc,1 2,1\nd,1 2,1\n"),
]
PARQUET_CASES = [
    Case("edges.parquet: the file is empty", {"edges.parquet": b""}),
    Case("edges.parquet: not a whole Parquet file", {"edges.parquet": EDGES.encode()}),
    Case("edges.parquet: not a whole Parquet file", {"edges.parquet": b"PAR1PAR1"}),
    Case("edges.parquet: the table has no rows, and no", {"edges.parquet": parquet(source=[], target=[])}),
    of_parquet("edges.parquet: no column holds the target", edges={"source": ["a"]}),
    of_parquet("edges.parquet, row 2, column 'source': the id", edges=E2 | {"source": ["a", None]}),
    of_parquet("edges.parquet, row 1, column 'target': the id", edges=E2 | {"target": ["", "a"]}),
    of_parquet("edges.parquet, row 2, column 'target': the node 'q'", edges=E2 | {"target": ["b", "q"]}),
    of_parquet("row 1, column 'source': ids must be text or whole", edges=E2 | {"source": [1.5, 2.0]}),
    of_parquet("row 1, column 'source': ids must be text or whole", edges=E2 | {"source": [True, False]}),
    of_parquet("row 1, column 'source': ids must be text or whole", edges=E2 | {"source": [[1], [2]]}),
    of_parquet("row 2, column 'weight': 0.0 is not a positive", edges=E2 | {"weight": [1.0, 0.0]}),
    of_parquet("row 2, column 'weight': nan is not a finite", edges=E2 | {"weight": [1.0, float("nan")]}),
    of_parquet("row 1, column 'weight': a number is missing", edges=E2 | {"weight": [None, 1.0]}),
    of_parquet("row 1, column 'weight': 'x' is not a number", edges=E2 | {"weight": ["x", "1"]}),
    of_parquet("row 1, column 'weight'", edges=E2 | {"weight": [[1.0], [2.0]]}),
    of_parquet("nodes.parquet: no column holds the id", nodes={"name": ["a", "b"]}),
    of_parquet("nodes.parquet: the table has no rows", nodes={"id": []}),
    of_parquet("nodes.parquet, row 2, column 'id': the id 'a' is there twice", nodes={"id": ["a", "a"]}),
    of_parquet("row 1, column 'label': the class '3' is seen once", nodes=N2 | {"label": [3, 4]}),
    of_parquet("row 2, column 'label': 0.5 is not the name of a class", nodes=N2 | {"label": [1.0, 0.5]}),
    of_parquet("row 1, column 'label': labels must be text", nodes=N2 | {"label": [[1], [2]]}),
    of_parquet("row 1, column 'age': inf is not a finite", nodes=N2 | {"age": [float("inf"), 1.0]}),
    of_parquet("row 2, column 'age': a number is missing", nodes=N2 | {"age": [1, None]}),
    of_parquet("row 2, column 'v': 1 numbers, but the first", nodes=N2 | {"v": [[1.0, 2.0], [1.0]]}),
    of_parquet(
        "row 1, column 'v': the vector is empty",
        nodes={"id": ["a"], "v": pl.Series([[]], dtype=pl.List(pl.Int8))},
    ),
    of_parquet("row 2, column 'v': the vector is missing", nodes=N2 | {"v": [[1.0], None]}),
    of_parquet("row 1, column 'v': nan is not a finite", nodes=N2 | {"v": [[float("nan")], [1.0]]}),
    of_parquet("row 2, column 'v': a number is missing", nodes=N2 | {"v": [[1.0], [None]]}),
    of_parquet("not both 'v' and 'u'", nodes=N2 | {"v": [[1.0], [2.0]], "u": [[1.0], [2.0]]}),
]
NPZ_CASES = [
    archive("g.npz: the file is empty", b""),
    archive("g.npz: not a whole NPZ file", b"not an archive"),
    archive("no array called edges or edge_index, only 'x'", x=np.ones((2, 2))),
    archive("array 'edges': must have shape [E, 2], not [2, 3]", edges=np.zeros((2, 3), dtype=int)),
    archive("array 'edge_index': must have shape [2, E], not [3, 2]", edge_index=np.zeros((3, 2), dtype=int)),
    archive("array 'edges': must have 2 dimensions, not 1", edges=np.arange(4)),
    archive("array 'edges': holds float64, and must hold whole numbers", edges=PAIRS * 1.0),
    archive("array 'edges': holds bool", edges=PAIRS == 1),
    archive("array 'edges': holds <U1", edges=np.array([["a", "b"]])),
    archive("array 'edges': holds complex128", edges=PAIRS * 1j),
    archive("array 'edges', row 1: edge 1 → -2 leaves", edges=[[0, 1], [1, -2]]),
    archive("array 'edges', row 1: edge 1 → 2 leaves the 2 nodes", edges=PAIRS, x=np.ones((2, 2))),
    archive("array 'edge_index', row 0: edge 0 → 5 leaves", edge_index=[[0], [5]], y=[0, 0]),
    archive("array 'edges': node 4000000000 in only", edges=[[0, 4_000_000_000]]),
    archive("array 'edges': node 50000000 in only", edges=[[0, 50_000_000]]),
    archive("2^63 or more", edges=np.array([[0, 2**63]], dtype=np.uint64)),
    archive("the graph has no nodes", edges=np.zeros((0, 2), dtype=int)),
    archive("array 'weight': has 3 weights for 2 edges", edges=PAIRS, weight=np.ones(3)),
    archive("array 'weight': must have 1 dimension, not 2", edges=PAIRS, weight=np.ones((2, 1))),
    archive("array 'weight', row 1: 0.0 is not a positive", edges=PAIRS, weight=[1.0, 0.0]),
    archive("array 'weight', row 0: nan is not a finite", edges=PAIRS, weight=[np.nan, 1.0]),
    archive("array 'weight': holds <U1, and must hold numbers", edges=PAIRS, weight=["a", "b"]),
    archive("array 'x': must have 2 dimensions, not 1", edges=PAIRS, x=np.ones(3)),
    archive("array 'x', row 2: inf in column 1 is not", edges=PAIRS, x=[[1, 2], [3, 4], [5, np.inf]]),
    archive("array 'x', row 0: 1e+300 in column 0 is not", edges=PAIRS, x=[[1e300], [1], [1]]),
    archive("array 'x': holds <U1, and must hold numbers", edges=PAIRS, x=[["a"], ["b"], ["c"]]),
    archive("'features' has 3 rows and 'y' has 4 rows", edges=PAIRS, x=np.ones((3, 1)), y=[0, 0, 0, 0]),
    archive("'y' has 3 rows and 'ids' has 2 rows", edges=PAIRS, y=[0, 0, 0], ids=[1, 2]),
    archive("array 'y', row 2: the class '9' is seen once", edges=PAIRS, y=[1, 1, 9]),
    archive("array 'y', row 1: 0.5 is not the name of a class", edges=PAIRS, y=[0.0, 0.5, 0.0]),
    archive("array 'y', row 0: inf is not the name of a class", edges=PAIRS, y=[np.inf, 0.0, 0.0]),
    archive("array 'y': must have 1 dimension, not 2", edges=PAIRS, y=np.zeros((3, 2), dtype=int)),
    archive("array 'labels': holds Python objects", edges=PAIRS, labels=np.array([None, 1, 2], dtype=object)),
    archive("array 'ids', row 2: the id 'a' is there twice", edges=PAIRS, ids=["a", "b", "a"]),
    archive("array 'ids': holds float64, and must hold text", edges=PAIRS, ids=[1.0, 2.0, 3.0]),
    archive("the array 'x_indptr' of the sparse", edges=PAIRS, x_data=[1.0], x_indices=[0], x_shape=[3, 1]),
    archive(
        "array 'x_indptr': must ascend from 0 to 1 in 4 steps",
        edges=PAIRS, x_data=[1.0], x_indices=[0], x_indptr=[0, 1, 1], x_shape=[3, 1],
    ),
    archive(
        "array 'x_indices', row 0: 4 is no column of 1",
        edges=PAIRS, x_data=[1.0], x_indices=[4], x_indptr=[0, 1, 1, 1], x_shape=[3, 1],
    ),
    archive(
        "array 'x_shape': the indices",
        edges=PAIRS, x_data=[1.0], x_indices=[0.0], x_indptr=[0, 1, 1, 1], x_shape=[3, 1],
    ),
    archive(
        "array 'x_data', row 0: nan is not a finite",
        edges=PAIRS, x_data=[np.nan], x_indices=[0], x_indptr=[0, 1, 1, 1], x_shape=[3, 1],
    ),
]  # fmt: skip
PLACE_CASES = [
    Case("there is no such file or folder", graph="sub/none"),
    Case("./mygraph: there is no such file or folder", graph="./mygraph"),
    Case("mygraph/: there is no such file or folder", graph="mygraph/"),
    Case("there is no file, folder or benchmark named 'mygraph'", graph="mygraph"),
    Case("none.npz: there is no such file", graph="none.npz"),
    Case("none.csv: there is no such file", graph="none.csv"),
    Case("the folder has no edges.csv or edges.csv.gz", graph="."),
    Case("the folder has no edges.csv", {"nodes.csv": NODES.encode()}),
    Case("the folder has no edges.csv", {"Edges.txt": EDGES.encode()}),
    Case("notes.txt: a graph is a folder, an .npz", {"notes.txt": b"hello"}, "notes.txt"),
    Case("there is no file, folder or benchmark named 'coraa': did you mean cora", graph="coraa"),
    Case("edges.csv: this is not a file", {"edges.csv/inner": b"x"}),
    Case("g.npz: ", {"g.npz/edges.npy": b"x"}, "g.npz"),
    Case("csbm", graph="csbm:phi=7"),
    Case("csbm", graph="csbm:colour=3"),
]


def generated() -> Iterator[Case]:
    """Whole files cut short, and good tables with one cell spoilt at random."""
    draw = random.Random(0)
    zipped = gzip.compress(EDGES.encode())
    whole = parquet(source=list(range(500)), target=list(range(1, 501)))
    packed = npz(edges=np.arange(400).reshape(-1, 2), y=np.zeros(400, dtype=int))
    for _ in range(12):
        cut = draw.randrange(1, len(zipped))
        yield Case("edges.csv.gz: ", {"edges.csv.gz": zipped[:cut]}, label=f"gzip cut at {cut}")
        cut = draw.randrange(1, len(whole))
        yield Case(
            "edges.parquet: not a whole", {"edges.parquet": whole[:cut]}, label=f"parquet cut at {cut}"
        )
        cut = draw.randrange(1, len(packed) - 100)
        yield Case("g.npz: not a whole", {"g.npz": packed[:cut]}, "g.npz", label=f"npz cut at {cut}")
    for at in range(80, len(packed) - 400, 400):
        spoilt = packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :]
        yield Case("g.npz", {"g.npz": spoilt}, "g.npz", label=f"npz spoilt at {at}")
    for _ in range(6):
        at = draw.randrange(10, len(zipped) - 8)
        spoilt = zipped[:at] + bytes([zipped[at] ^ 0xFF]) + zipped[at + 1 :]
        yield Case("edges.csv.gz", {"edges.csv.gz": spoilt}, label=f"gzip spoilt at {at}")
    for k in range(40):
        yield spoilt_cell(draw, k)


def spoilt_cell(draw: random.Random, number: int) -> Case:
    """A good graph with one bad cell in a random line and column of one file."""
    rows, separator = draw.randrange(6, 30), draw.choice([",", "\t"])
    suffix = "csv" if separator == "," else "tsv"
    nodes = [["id", "label", "f0", "f1", "f2"]]
    nodes += [[f"n{k}", "uv"[k % 2], *(f"{draw.random():.3f}" for _ in range(3))] for k in range(rows)]
    edges = [["source", "target", "weight"]]
    edges += [[f"n{draw.randrange(rows)}", f"n{draw.randrange(rows)}", "1.5"] for _ in range(rows)]
    table, line = draw.choice([nodes, edges]), draw.randrange(1, rows + 1)
    if table is nodes:
        column = draw.choice([0, 2, 3, 4])
        bad = (
            draw.choice(["", f"n{line % rows}"])
            if column == 0
            else draw.choice(["", "?", "nan", "inf", "1e99"])
        )
    else:
        column = draw.randrange(3)
        bad = draw.choice(["", "0", "-2", "NaN", "two"]) if column == 2 else draw.choice(["", "stranger"])
    table[line][column] = bad
    later = max(line, line % rows + 1) if table is nodes and column == 0 and bad else line
    name = "nodes" if table is nodes else "edges"
    files = {
        f"{stem}.{suffix}": "\n".join(separator.join(row) for row in content).encode()
        for stem, content in (("nodes", nodes), ("edges", edges))
    }
    place = f"{name}.{suffix}, line {later + 1}, column {table[0][column]!r}: "
    return Case(place, files, label=f"cell {number}: {bad!r}")


CASES = [*EDGE_CASES, *NODE_CASES, *PARQUET_CASES, *NPZ_CASES, *PLACE_CASES, *generated()]


def test_there_are_two_hundred() -> None:
    distinct = {(case.graph, tuple(sorted(case.files.items()))) for case in CASES}
    assert len(distinct) >= 200


@pytest.fixture
def outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[dict[str, bytes], str], tuple[int, str, str]]:
    def inspect(files: dict[str, bytes], graph: str) -> tuple[int, str, str]:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["plap", "inspect", graph, "--raw-features"])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capfd.readouterr()
        return int(caught.value.code or 0), out, err

    return inspect


@pytest.mark.parametrize("case", CASES, ids=[case.label or case.sentence for case in CASES])
def test_malformed_graph_is_refused_in_one_sentence(
    case: Case, outcome: Callable[[dict[str, bytes], str], tuple[int, str, str]]
) -> None:
    code, out, err = outcome(case.files, case.graph)
    assert code == 2
    assert out == ""
    assert err.startswith("plap: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert case.sentence in err


def test_the_good_folder_is_good(outcome: Callable[[dict[str, bytes], str], tuple[int, str, str]]) -> None:
    code, _, err = outcome(GOOD, ".")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        ("a,b\na,zed\n", "--on-bad-rows drop leaves this row out\n"),
        ("a,zed\nb,zed\n", "--on-bad-rows drop leaves this row and 1 more like it out\n"),
    ],
)
def test_it_is_said_how_many_rows_are_bad_and_what_to_do(
    rows: str, advice: str, outcome: Callable[[dict[str, bytes], str], tuple[int, str, str]]
) -> None:
    code, _, err = outcome(GOOD | {"edges.csv": f"source,target\n{rows}".encode()}, ".")
    assert (code, err.endswith(advice)) == (2, True)
