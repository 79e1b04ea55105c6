"""Write the page of reproduced tables, and the configurations that the package ships, from ``results/``.

It also writes the parts of docs/reproduction.md that summarise them. ``make evidence`` runs it after
``plap reproduce TABLE --publish results/``.
"""

from __future__ import annotations

from pathlib import Path

from evidence_page import best_json, curves, evidence_page, with_evidence

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
OWN = {
    str(table): str(RESULTS / "own")
    for table in [ROOT / "benchmarks" / "directed" / "directed-heterophilic.toml"]
    if (RESULTS / "own" / f"{table.stem}.parquet").exists()
}
"""Tables that are not the package's."""


def generated() -> dict[Path, str]:
    """What the text files should hold."""
    page = ROOT / "docs" / "reproduction.md"
    return {
        page: with_evidence(page.read_text(encoding="utf-8"), RESULTS, OWN),
        ROOT / "docs" / "reproduced-tables.md": evidence_page(RESULTS, OWN, ROOT),
        ROOT / "src" / "plap" / "experiments" / "best.json": best_json(RESULTS),
    }


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    for name, picture in curves(RESULTS).items():
        (Path(__file__).parent / name).write_bytes(picture)
        print(f"docs/figures/{name}")
