"""What a trained model learned, as numbers."""

from plap.insight.attack import AttackCurve, AttackPoint, adaptive_attack, attack_curve
from plap.insight.members import (
    learned_weights,
    load_members,
    members_of,
    node_embeddings,
    relative_weights,
    tsne,
    uniform_entropy,
    weight_entropy,
)
from plap.insight.node_explanation import NodeExplanation, explain_node
from plap.insight.reliance import NeighbourHelp, neighbour_help
from plap.insight.risk_bound import RiskBound, risk_bound
from plap.insight.trust import (
    attention_trust,
    edge_trust,
    feature_cosine,
    neighbour_jaccard,
    pair_evidence,
    trust_explanation,
)
from plap.insight.trust_comparison import TrustComparison, compare_trust, compare_trust_under_attack

__all__ = [
    "AttackCurve",
    "AttackPoint",
    "NeighbourHelp",
    "NodeExplanation",
    "RiskBound",
    "TrustComparison",
    "adaptive_attack",
    "attack_curve",
    "attention_trust",
    "compare_trust",
    "compare_trust_under_attack",
    "edge_trust",
    "explain_node",
    "feature_cosine",
    "learned_weights",
    "load_members",
    "members_of",
    "neighbour_help",
    "neighbour_jaccard",
    "node_embeddings",
    "pair_evidence",
    "relative_weights",
    "risk_bound",
    "trust_explanation",
    "tsne",
    "uniform_entropy",
    "weight_entropy",
]
