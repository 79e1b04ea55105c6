from __future__ import annotations

import pytest

from plap.data.dataset import DatasetName


@pytest.mark.parametrize(
    ("text", "base", "parameters"),
    [
        ("texas", "texas", ()),
        ("computers:r=0.25", "computers", (("r", "0.25"),)),
        ("csbm:phi=-0.5,n=100", "csbm", (("phi", "-0.5"), ("n", "100"))),
        ("csbm:phi", "csbm", (("phi", ""),)),
        ("csbm:phi=0,phi=1", "csbm", (("phi", "0"), ("phi", "1"))),
        (" csbm: phi = 1, ,n=4 ", "csbm", (("phi", "1"), ("n", "4"))),
        ("a:folder/graph", "a:folder/graph", ()),
        ("a:folder/graph:r=0.5", "a:folder/graph", (("r", "0.5"),)),
        ("my:graph", "my:graph", ()),
        ("", "", ()),
    ],
)
def test_a_name_is_taken_apart(text: str, base: str, parameters: tuple[tuple[str, str], ...]) -> None:
    name = DatasetName.parse(text)
    assert (name.base, name.parameters) == (base, parameters)
    assert DatasetName.parse(str(name)) == name or text == "csbm:phi"


def test_what_is_asked_of_a_name() -> None:
    name = DatasetName.parse("own/ours:r=0.5,seed=3")
    assert (name.value("r"), name.value("phi")) == ("0.5", None)
    assert str(name.without("r")) == "own/ours:seed=3"
    assert str(name.bare) == "ours:r=0.5,seed=3"
    assert str(name.with_base("texas")) == "texas:r=0.5,seed=3"
    assert name.is_path
    assert not name.bare.is_path
    assert DatasetName.parse("CSBM:phi=1").is_csbm
