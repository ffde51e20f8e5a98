"""Compaction: which events leave the view, and what stands for them. Decisions only; the service carries them out."""

from turnlog.compaction.plan import (
    CompactionPlan,
    CompactionResult,
    Outcome,
    Strategy,
    Summarize,
    Summary,
    SummaryNeeded,
)
from turnlog.compaction.request import CompactionRequest, ViewParts
from turnlog.compaction.summary import SummarizingCompactionStrategy, SummaryRequest
from turnlog.compaction.triggers import (
    ContextWindowTrigger,
    TokenCountTrigger,
    Trigger,
    TurnCountTrigger,
    always,
)
from turnlog.compaction.window import WindowCompactionStrategy

__all__ = [
    "CompactionPlan",
    "CompactionRequest",
    "CompactionResult",
    "ContextWindowTrigger",
    "Outcome",
    "Strategy",
    "Summarize",
    "SummarizingCompactionStrategy",
    "Summary",
    "SummaryNeeded",
    "SummaryRequest",
    "TokenCountTrigger",
    "Trigger",
    "TurnCountTrigger",
    "ViewParts",
    "WindowCompactionStrategy",
    "always",
]
