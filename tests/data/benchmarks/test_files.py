from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plap.data import load
from plap.data.benchmarks.loading import load_benchmark
from plap.data.benchmarks.registry import BENCHMARKS, find
from plap.errors import InputError
from tiny_benchmarks import GEOM_GCN_LABELS, WRITERS, without_sums, write_planetoid


@pytest.fixture(autouse=True)
def only_given_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PLAP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class TestTrust:
    """Nothing is unpickled that was not verified, and what is refused is named."""

    def booby_trapped(self, root: Path) -> tuple[Path, Path]:
        write_planetoid(root)
        marker, trap = root / "sprung", root / "Planetoid/Cora/raw/ind.cora.x"

        class Trap:
            def __reduce__(self) -> Any:
                return Path.touch, (marker,)

        trap.write_bytes(pickle.dumps(Trap()))
        return marker, trap

    def test_the_trap_works(self, tmp_path: Path) -> None:
        marker, trap = self.booby_trapped(tmp_path)
        pickle.loads(trap.read_bytes())
        assert marker.exists()

    def test_a_wrong_sum_is_refused_by_name_before_unpickling(self, tmp_path: Path) -> None:
        marker, _ = self.booby_trapped(tmp_path)
        with pytest.raises(InputError, match=r"ind\.cora\.x is not the published file"):
            load("cora", tmp_path)
        assert not marker.exists()

    def test_a_pickle_without_known_sum_is_refused(self, tmp_path: Path) -> None:
        marker, _ = self.booby_trapped(tmp_path)
        row = find("cora")
        row = replace(row, files=tuple(replace(file, sha256=None) for file in row.files))
        with pytest.raises(InputError, match=r"ind\.cora\.x is a pickle without a known SHA-256"):
            load_benchmark(row, tmp_path)
        assert not marker.exists()

    def test_a_forged_processed_folder_is_not_looked_at(self, tmp_path: Path) -> None:
        WRITERS["texas"](tmp_path)
        forged = tmp_path / "WebKB/texas/processed/data.pt"
        forged.parent.mkdir()
        forged.write_bytes(b"not what torch wrote")
        data = load_benchmark(without_sums("texas", tmp_path), tmp_path)
        assert data.y.tolist() == GEOM_GCN_LABELS

    def test_every_pickled_set_has_all_its_sums(self) -> None:
        for row in BENCHMARKS.values():
            if row.pickled:
                assert all(file.sha256 for file in row.files), row.name

    def test_other_contents_under_the_published_name_are_refused(self, tmp_path: Path) -> None:
        WRITERS["roman-empire"](tmp_path)
        with pytest.raises(InputError, match=r"not the published roman-empire: 3 nodes, not 22662"):
            load("roman-empire", tmp_path)

    @pytest.mark.parametrize("name", ["roman-empire", "squirrel-filtered", "ppi", "ogbn-arxiv", "texas"])
    def test_unreadable_files_are_one_sentence(self, name: str, tmp_path: Path) -> None:
        WRITERS[name](tmp_path)
        row = find(name)
        (tmp_path / row.files[0].path).write_bytes(b"\x00 nonsense")
        with pytest.raises(InputError, match=f"^{name}: the files in .* cannot be read") as caught:
            load_benchmark(without_sums(name, tmp_path), tmp_path)
        assert "\n" not in str(caught.value)


class TestWhereFilesAreLookedFor:
    def test_root_then_environment_then_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        row = find("minesweeper")
        folders = [tmp_path / "root", tmp_path / "environment", tmp_path / "cache" / "plap"]
        for k, folder in enumerate(folders):
            WRITERS["minesweeper"](folder, label=k)
        monkeypatch.setenv("PLAP_DATA", str(folders[1]))
        row = replace(row, statistics=None, files=tuple(replace(file, sha256=None) for file in row.files))
        assert int(load_benchmark(row, folders[0]).y[0]) == 0
        assert int(load_benchmark(row, tmp_path / "nowhere").y[0]) == 1
        assert int(load_benchmark(row).y[0]) == 1
        monkeypatch.delenv("PLAP_DATA")
        assert int(load_benchmark(row).y[0]) == 2

    def test_a_missing_file_is_named_with_its_place(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            load("texas", tmp_path / "root")
        place = tmp_path / "root/WebKB/texas/raw/out1_node_feature_label.txt"
        assert f"it would go to {place}" in str(caught.value)
        assert not (tmp_path / "root").exists()

    def test_a_root_is_never_downloaded_into(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[str] = []
        monkeypatch.setattr("plap.data.benchmarks.files.urlopen", lambda url, **_: asked.append(url))
        with pytest.raises(InputError):
            load("texas", tmp_path)
        assert asked == []

    def test_a_failed_download_is_one_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unreachable(url: str, timeout: float) -> None:
            raise OSError(101, "Network is unreachable")

        monkeypatch.setattr("plap.data.benchmarks.files.urlopen", unreachable)
        with pytest.raises(InputError, match=r"could not be fetched from https.*Network is unreachable"):
            load("texas")
        assert not (tmp_path / "cache").exists()

    def test_downloads_go_to_the_cache_and_are_verified(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        WRITERS["roman-empire"](tmp_path / "server")
        row = without_sums("roman-empire", tmp_path / "server")
        source = tmp_path / "server" / row.files[0].path
        monkeypatch.setattr("plap.data.benchmarks.files.urlopen", lambda url, **_: source.open("rb"))
        cached = tmp_path / "cache" / "plap" / row.files[0].path
        bad = replace(row, files=(replace(row.files[0], sha256="0" * 64),))
        with pytest.raises(InputError, match="is not the published file"):
            load_benchmark(bad)
        assert not cached.exists()
        assert load_benchmark(row).y.tolist() == [0, 1, 1]
        assert [path.name for path in cached.parent.iterdir()] == ["roman_empire.npz"]
