"""What the engine's analyses found, by the old names. Nothing is analysed here."""

from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple

from .. import _engine
from .._picture import size
from ._recording import Found, ask

TYPES = {  # what the old names call the engine's findings
    "leak": "monotonic_increase", "growth": "gradual_growth", "fragmentation": "fragmentation", "oom": "out_of_memory",
    "gap": "device_gap", "bounded": "bounded_growth",
}  # fmt: skip
IMPACT = {"critical": "high", "warning": "medium", "info": "low"}
LEAKS = ("leak", "growth")
LINES = 3  # of the peak that are named where nothing else is to be recommended


class MemoryPattern(NamedTuple):
    """What a curve does, or what was found of it."""

    pattern_type: str
    """steady, saw-tooth, spikes, steady_growth, insufficient_cleanup … of a curve; fragmentation … of a finding"""
    description: str
    severity: str
    suggestions: List[str]
    data: Dict[str, Any]


class PerformanceInsight(NamedTuple):
    """Something worth to know of how time and memory go."""

    title: str
    description: str
    impact: str
    """high, medium or low"""
    recommendations: List[str]
    data: Dict[str, Any]


class MemoryAnalyzer:
    """Asks the engine what it finds in a recording.

    Each method takes what a profiler or tracker of this program made, a run's id, the path of a result's file, or
    tracking events; nothing: this program's recording so far.

    Args:
        profiler: its recording is this program's; kept for the old way to call it.
        sensitivity: the least growth that is told, as a share of what was held at the peak.
    """

    def __init__(self, profiler: Any = None, sensitivity: float = 0.0) -> None:
        if not 0 <= sensitivity <= 1:
            raise ValueError(f"a sensitivity of {sensitivity} is not a share: it is from 0 to 1")
        self.profiler, self.sensitivity = profiler, sensitivity

    def detect_memory_leaks(self, tracking_results: Any = None) -> List[Dict[str, Any]]:
        """What grows and is kept, worst first: type, description, severity; where known file, line, bytes."""
        found = ask(tracking_results)
        if found is None:
            return []
        not_looked = found.data["headline"].get("not_looked_for")
        if not_looked:
            _engine.say(str(not_looked))
        least = self.sensitivity * _peak(found)
        return [_leak(f) for f in found.findings(*LEAKS) if (f.get("bytes") or least) >= least]

    def analyze_memory_patterns(self, results: Any = None) -> List[MemoryPattern]:
        """What each curve does as a whole, and findings on how memory is used."""
        found = ask(results)
        if found is None:
            return []
        patterns = [
            MemoryPattern(TYPES[f["kind"]], _told(f), f["severity"], _advice([f]), f) for f in found.findings(*TYPES)
        ]
        for row in found.rows("shapes"):
            words = f"{row['curve']}: {row['pattern']}, {size(row['lowest'])} to {size(row['highest'])}"
            patterns.append(MemoryPattern(row["pattern"].replace(" ", "_"), words, "info", [], row))
        return patterns

    def generate_performance_insights(self, results: Any = None) -> List[PerformanceInsight]:
        """Findings, then what the named parts of the program took, the longest first."""
        found = ask(results)
        if found is None:
            return []
        insights = [
            PerformanceInsight(f["title"], _told(f), IMPACT[f["severity"]], _advice([f]), f) for f in found.findings()
        ]
        for row in sorted(found.rows("spans"), key=lambda row: -row["total"]):
            words = f"{row['span']}: {_times(row['count'])}, {row['total'] / 1e9:.3g} s in all"
            if row.get("rss_rise"):
                words += f", host memory rose by up to {size(row['rss_rise'])}"
            if row.get("device_peak"):
                words += f", up to {size(row['device_peak'])} allocated on the device at its ends"
            insights.append(PerformanceInsight(f"Time in {row['span']}", words, "low", [], row))
        return insights

    def generate_optimization_report(self, results: Any = None) -> Dict[str, Any]:
        """The score of 0 to 10 with its parts, findings and what to change. nan: the recording tells no score."""
        found = ask(results)
        if found is None:
            return {
                "optimization_score": math.nan,
                "score_parts": [],
                "recommendations": [],
                "critical_issues": [],
                "findings": [],
                "summary": "",
                "run": None,
            }
        score = found.data["headline"].get("efficiency_milli")
        return {
            "optimization_score": math.nan if score is None else score / 1000,
            "score_parts": [{**row, "score": row["score"] / 1000} for row in found.rows("efficiency")],
            "recommendations": _recommendations(found),
            "critical_issues": [_told(f) for f in found.findings() if f["severity"] == "critical"],
            "findings": found.findings(), "summary": found.data["headline"]["verdict"], "run": found.id,
        }  # fmt: skip

    def analyze_efficiency(self, results: Any = None) -> float:
        """The score of 0 to 10; nan: the recording does not tell it."""
        return float(self.generate_optimization_report(results)["optimization_score"])

    def analyze_fragmentation(self, results: Any = None) -> Dict[str, Any]:
        """What lies free in allocators: `score` from 0 to 1, where 1 is none; absent: not known."""
        found = ask(results)
        parts = [row for row in found.rows("efficiency") if row["part"] == "fragmentation"] if found is not None else []
        findings = found.findings("fragmentation") if found is not None else []
        return {
            **({"score": parts[0]["score"] / 1000, "description": parts[0]["what"]} if parts else {}),
            "findings": findings,
        }

    def score_optimization(self, results: Any = None) -> Dict[str, Any]:
        """The score and its parts by name, each of 0 to 10."""
        made = self.generate_optimization_report(results)
        return {
            "overall_score": made["optimization_score"], "top_recommendations": made["recommendations"],
            "categories": {row["part"]: 10 * row["score"] for row in made["score_parts"]},
        }  # fmt: skip


def _leak(finding: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "type": TYPES[finding["kind"]], "description": _told(finding), "severity": finding["severity"],
        "suggestions": _advice([finding]),
        **{key: value for key, value in finding.items() if key not in ("title", "text", "severity")},
    }  # fmt: skip


def _told(finding: Dict[str, Any]) -> str:
    where = f" ({finding['file']}:{finding.get('line', 0)})" if finding.get("file") else ""
    return f"{finding['title']}{where}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _advice(findings: List[Dict[str, Any]]) -> List[str]:
    return list(dict.fromkeys(f["advice"] for f in findings if f.get("advice")))


def _recommendations(found: Found) -> List[str]:
    """Advice of the findings; then the lines that held most at the peak, which is where to look."""
    advice = _advice(found.findings())
    for row in found.rows("sites")[:LINES]:
        if row.get("bytes"):
            advice.append(
                f"{row['line']} held {size(row['bytes'])} of the host's memory at its highest: look there first"
            )
    return advice


def _peak(found: Found) -> int:
    return int(found.data["headline"]["peak"].get("bytes") or 0)
