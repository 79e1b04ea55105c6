"""The order of the gallery: from what most people ask to what few do."""

ORDER = [
    "does_my_graph_help.py",
    "which_edges_lie.py",
    "heterophily_in_one_picture.py",
    "one_percent_of_labels.py",
    "surviving_an_attack.py",
    "nodes_of_tomorrow.py",
    "one_line_in_pyg.py",
    "explaining_one_prediction.py",
    "denoising_a_signal.py",
    "total_variation_of_an_image.py",
    "clustering_moons.py",
    "what_p_mu_and_k_do.py",
]


def position(name: str) -> int:
    """The place of an example in the gallery."""
    return ORDER.index(name)
