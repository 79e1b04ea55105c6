"""Benchmarks by name: one registry, readers of their formats, checked files."""

from plap.data.benchmarks.benchmark import Benchmark
from plap.data.benchmarks.loading import load, load_benchmark
from plap.data.benchmarks.registry import BENCHMARKS, find

__all__ = ["BENCHMARKS", "Benchmark", "find", "load", "load_benchmark"]
