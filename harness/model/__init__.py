"""The typed documents of a run: the only source of what is written and of the JSON schemas."""

from harness.model.agreement import (
    AccuracyChange,
    AccuracyVerdict,
    Agreement,
    AskedBackend,
    AskedCondition,
    BackendAgreement,
    ConditionAgreement,
    Disagreement,
    PairAgreement,
    RightCount,
    StoredAnswer,
    StoredValues,
    TooLong,
    ValuesAgreement,
    ValuesPair,
)
from harness.model.baseline import (
    ComparedAccuracy,
    ComparedFigure,
    ComparedLabel,
    ComparedPair,
    ComparedRun,
    Difference,
    GateKind,
    GateRow,
    MissingFigure,
    RunComparison,
)
from harness.model.cell import CellResult, State
from harness.model.cell_facts import (
    CachePreparation,
    CellFacts,
    CellRequest,
    CellWorkload,
    EngineFound,
    HistogramIncrease,
    LoadNode,
    Minimum,
    RoleFacts,
    Workers,
)
from harness.model.claim import ClaimFinding, ClaimResult, ClaimVerdict, unstated_words
from harness.model.client import ClientStats, Quantiles, Stall
from harness.model.comparison import (
    Capacity,
    CapacityPair,
    CapacityVerdict,
    ComparisonVerdict,
    Estimate,
    Interval,
    Knee,
    Levels,
    Looks,
    Method,
    Noise,
    PairVerdict,
    Ranking,
    Scaling,
    Stopping,
    TestedLoad,
    Unequal,
    VerdictRules,
)
from harness.model.conclusion import (
    ComparedConclusion,
    Conclusion,
    Good,
    Goodput,
    NextStep,
    Order,
    PairState,
    Place,
    Speedup,
    UnderLoad,
    Warned,
)
from harness.model.conditions import (
    CacheState,
    Conditions,
    ExactOutput,
    OutputText,
    PromptTokens,
    Sampling,
    Thinking,
)
from harness.model.doctor import (
    ClientErrors,
    ClockFacts,
    Dispersions,
    DoctorResult,
    ErrorSpread,
    Exactness,
    LimitFacts,
    MeasuredLoad,
    OnNode,
    Reach,
    ScriptedServer,
    TriedLoad,
)
from harness.model.ending import Ending, EndKind
from harness.model.figures import (
    AdapterFigures,
    Answers,
    Arrivals,
    Backlog,
    ClassStats,
    Constraint,
    Counts,
    EngineStall,
    ImageFigures,
    LatencyStats,
    Law,
    Limit,
    OutputTokens,
    ProbeSize,
    Requests,
    Sample,
    SessionCounts,
    Slo,
    Standstill,
    SteadyState,
    Synchrony,
    TemplateTokens,
)
from harness.model.history import HistoryEntry, HistoryFigure, HistoryHost, HistoryLoad
from harness.model.identity import AnsweredModel, Identity
from harness.model.imported import Fact, Imported, Level
from harness.model.issue import IssueCode
from harness.model.load import Abandonment, Load, LoadPoint, RateSegment, WorkingSet
from harness.model.machine import (
    BusiestProcess,
    Cost,
    Energy,
    Gpu,
    GpuDevice,
    Host,
    Limiter,
    LoadNodeUse,
    MigInstance,
    Price,
    Prices,
    Range,
    Server,
    SourceHealth,
    TelemetryHealth,
)
from harness.model.manifest import (
    BackendEntry,
    DeclaredVerdict,
    Failure,
    GitRevision,
    HostFacts,
    LaunchChoice,
    Manifest,
    ProbeCount,
    ScenarioHeader,
    ScenarioTables,
    Seeds,
)
from harness.model.metric import PERCENTILES, STATISTICS, WITHOUT_TEXT, Distortion, Metric
from harness.model.metric_table import METRICS, SLO_METRICS, VERDICT_METRICS, better_of, distorted_by, family
from harness.model.plan import (
    DryRun,
    MissingNeed,
    Plan,
    PlanBlock,
    PlanCell,
    PlannedBackend,
    PlannedCell,
    PlannedLaunch,
)
from harness.model.probe import Finding, Probed
from harness.model.record import UNSET, Record, UnsetType, as_json, doc, from_json, known
from harness.model.replicas import Replica, Replicas, Roles
from harness.model.sampled import Sampled, SampledSource
from harness.model.summary import ModelName, RunWarning, Summary, labels
from harness.model.validity import VERDICTS, Cause, Doubt, Reason, Validity
from harness.model.workload import (
    ArrivalStatistics,
    CardLoad,
    ChatCount,
    Histogram,
    Lengths,
    RequestFigures,
    Sharing,
    WorkloadCard,
    WorkloadCards,
)
