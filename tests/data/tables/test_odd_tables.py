"""Two hundred odd tables: a result, or one sentence and exit code 2; never a traceback."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from plap.cli import main
from plap.data.tables import load_folder

ROWS = 40
CELLS: dict[str, Callable[[random.Random, int], str]] = {
    "number": lambda draw, k: f"{draw.gauss(50, 20):.2f}",
    "huge": lambda draw, k: draw.choice(["1e300", "-1e300", "1e-300", "0", "inf", "nan"]),
    "heavy": lambda draw, k: f"{10 ** draw.uniform(-6, 9):.6g}",
    "comma": lambda draw, k: f"{draw.uniform(0, 9999):.2f}".replace(".", ","),
    "thousands": lambda draw, k: f"{draw.randrange(10**6):,}",
    "percent": lambda draw, k: f"{draw.uniform(0, 100):.1f} %",
    "money": lambda draw, k: f"{draw.choice('€$£')} {draw.uniform(0, 100):.2f}",
    "mostly numbers": lambda draw, k: draw.choice(["1", "2", "3", "4", "5", "n/a", "?", "-"]),
    "words and numbers": lambda draw, k: draw.choice(["1", "two", "3", "four"]),
    "category": lambda draw, k: draw.choice(["red", "green", "blue"]),
    "names": lambda draw, k: f"person {k}",
    "same": lambda draw, k: "x",
    "empty": lambda draw, k: "",
    "almost empty": lambda draw, k: "7" if k == 3 else "",
    "boolean": lambda draw, k: draw.choice(["yes", "no", "Y", "N", ""]),
    "date": lambda draw, k: f"20{draw.randrange(10, 30)}-{draw.randrange(1, 13):02d}-0{draw.randrange(1, 9)}",
    "american date": lambda draw, k: f"{draw.randrange(1, 13)}/{draw.randrange(1, 29)}/2024",
    "impossible date": lambda draw, k: draw.choice(["2024-02-30", "0000-00-00", "9999-12-31", "2024-01-05"]),
    "timestamp": lambda draw, k: str(1_600_000_000 + draw.randrange(10**8)),
    "text": lambda draw, k: " ".join(draw.choice(["late", "paid", "wrote", "again"]) for _ in range(6)),
    "quotes": lambda draw, k: '"he said ""no"", twice"',
    "line breaks": lambda draw, k: '"one\ntwo"',
    "vector": lambda draw, k: f"[{draw.random():.2f} {draw.random():.2f}]",
    "ragged vector": lambda draw, k: "[" + " ".join("1" for _ in range(draw.randrange(1, 4))) + "]",
    "emoji": lambda draw, k: draw.choice(["🙂", "日本語", "Ω≈ç", "naïve"]),
    "zero padded": lambda draw, k: f"{draw.randrange(100):05d}",
    "hexadecimal": lambda draw, k: f"0x{draw.randrange(4096):x}",
    "scientific": lambda draw, k: f"{draw.uniform(1, 9):.1f}E{draw.randrange(-5, 5)}",
    "codes": lambda draw, k: draw.choice(["4111", "5812", "7995"]),
    "json": lambda draw, k: '"{""a"": 1}"',
}  # fmt: skip
LABELS: dict[str, Callable[[random.Random, int], str]] = {
    "two classes": lambda draw, k: "uv"[k % 2],
    "rare class": lambda draw, k: "rare" if k in (3, 9) else "usual",
    "lone class": lambda draw, k: "once" if k == 5 else "uv"[k % 2],
    "minus one": lambda draw, k: draw.choice(["-1", "1"]),
    "numbers": lambda draw, k: f"{draw.gauss(0, 1):.3f}",
    "few known": lambda draw, k: "uv"[k % 2] if k < 8 else "",
    "none": lambda draw, k: "",
    "one class": lambda draw, k: "u",
    "booleans": lambda draw, k: draw.choice(["true", "false"]),
}


@dataclass(frozen=True)
class Odd:
    """A folder of files, written when it is needed."""

    label: str
    nodes: bytes
    edges: bytes


def odd_tables() -> Iterator[Odd]:
    draw = random.Random(5)
    edges = "source,target\n" + "".join(
        f"n{draw.randrange(ROWS)},n{draw.randrange(ROWS)}\n" for _ in range(90)
    )
    kinds = [(cells, "two classes") for cells in CELLS] + [("number", labels) for labels in LABELS]
    kinds += [(draw.choice(list(CELLS)), draw.choice(list(LABELS))) for _ in range(120)]
    for number, (cells, labels) in enumerate(kinds):
        others = draw.sample(list(CELLS), draw.randrange(3))
        header = ["id", "label", "value", *(f"more {k}" for k in range(len(others)))]
        columns = [LABELS[labels], *(CELLS[each] for each in (cells, *others))]
        rows = [header, *([f"n{k}", *(cell(draw, k) for cell in columns)] for k in range(ROWS))]
        separator = draw.choice([",", ",", ",", "\t", "|"])
        if any(separator in cell and not cell.startswith('"') for row in rows for cell in row):
            separator = ";"
        text = "\n".join(separator.join(row) for row in rows)
        encoding = draw.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
        name = f"{number}: {cells}, {labels}, {separator!r}, {encoding}"
        yield Odd(name, text.encode(encoding), edges.encode())
    good = "\n".join(["id,label,value", *(f"n{k},{'uv'[k % 2]},{k % 7}" for k in range(ROWS))])
    for number in range(50):  # damaged at random
        data = bytearray(good.encode())
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data))
            if draw.random() < 0.5:
                data[at] = draw.randrange(256)
            else:
                del data[at : at + draw.randrange(1, 30)]
        yield Odd(f"damaged {number}", bytes(data), edges.encode())


TABLES = list(odd_tables())


def test_there_are_two_hundred() -> None:
    assert len({table.nodes for table in TABLES}) >= 200


def outcome(folder: Path, table: Odd, *arguments: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    folder.mkdir()
    (folder / "nodes.csv").write_bytes(table.nodes)
    (folder / "edges.csv").write_bytes(table.edges)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0), capfd.readouterr().err


def check(code: int, err: str) -> None:
    assert code in (0, 2)
    assert "Traceback" not in err
    if code == 2:
        assert err.startswith("plap: ")
        assert err.count("\n") == 1


@pytest.mark.parametrize("table", TABLES, ids=[table.label for table in TABLES])
def test_an_odd_table_is_read_or_refused_in_one_sentence(
    table: Odd, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "graph"
    for options in ((), ("--on-bad-rows", "drop")) if table in TABLES[::4] else ((),):
        code, err = outcome(folder, table, "inspect", str(folder), *options, capfd=capfd)
        check(code, err)
        folder.rename(tmp_path / f"done{len(options)}")


@pytest.mark.parametrize("table", TABLES[::16], ids=[table.label for table in TABLES[::16]])
def test_a_fit_of_an_odd_table_is_whole_or_nothing(
    table: Odd, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "graph", tmp_path / "out"
    few = ("--no-tune", "--seeds", "1", "--max-epochs", "3", "-q")
    code, err = outcome(folder, table, "fit", str(folder), "-o", str(out), *few, capfd=capfd)
    check(code, err)
    assert (code == 0) == (out / "report.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == (["graph", "out"] if code == 0 else ["graph"])


def test_rows_that_are_cut_off_are_noted(tmp_path: Path) -> None:
    lines = [f"n{k},{'ab'[k % 2]},{k},x,{k % 7}" for k in range(30)]
    whole = "\n".join(["id,label,one,two,three", *lines])
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\nn1,n2\n")
    (tmp_path / "nodes.csv").write_text(whole)
    assert not any("fewer cells" in note for note in load_folder(tmp_path).notes)
    (tmp_path / "nodes.csv").write_text(whole + "\nn31,a,1")
    said = "1 row has fewer cells than columns (line 32: 3 under 5 columns); what is not there is missing."
    assert f"nodes.csv: {said}" in load_folder(tmp_path).notes
    (tmp_path / "nodes.csv").write_text(whole.replace("n5,", '"n5",') + '\nn30,b,2\n"n31",a,1,"x"\n')
    assert any("2 rows have fewer cells than columns (line 32: 3" in n for n in load_folder(tmp_path).notes)
    (tmp_path / "nodes.csv").write_text(whole + '\nn31,a,1,"x,y",\n')
    assert not any("fewer cells" in note for note in load_folder(tmp_path).notes)


def test_a_column_that_tells_the_label_is_named(tmp_path: Path) -> None:
    def notes(cells: Sequence[str]) -> str:
        rows = [f"n{k},{'' if k % 5 == 0 else 'rg'[k % 2]},{k % 3},{cells[k]}" for k in range(100)]
        (tmp_path / "nodes.csv").write_text("\n".join(["id,label,size,outcome", *rows]))
        (tmp_path / "edges.csv").write_text("source,target\nn0,n1\nn1,n2\n")
        data = load_folder(tmp_path)
        assert "'size' alone" not in " ".join(data.notes)
        return " ".join(data.notes)

    said = "the column 'outcome' alone tells the label and is empty where the label is unknown; if it is not"
    assert said in notes(["" if k % 5 == 0 else ("red", "green")[k % 2] for k in range(100)])
    assert "'outcome' alone tells the label; if" in notes([("7", "9")[k % 2] for k in range(100)])
    assert "'outcome' alone tells the label; if" in notes([str(k + 1000 * (k % 2)) for k in range(100)])
    assert "alone tells" not in notes([str(k) for k in range(100)])
    assert "alone tells" not in notes([("red", "green")[(k + (k == 41)) % 2] for k in range(100)])
    assert "alone tells" not in notes([("red", "green")[k % 2] if k < 15 else "" for k in range(100)])
