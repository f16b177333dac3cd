//! What a provider can do wrong.

/// One thing that a provider does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sin {
    // Machines
    TakesErrorsForGone,
    TakesAbsenceFromAListForGone,
    NeedsNoWitness,
    MatchesByPrefix,
    AsksByNameNotById,
    SweepsWhatItGets,
    ShowsEverythingAsRunning,
    AsksForEachMachineInASweep,
    AsksAboutForeignIds,
    ForgetsWhatASweepKnows,
    Panics,
    Hangs,
    // Balancers
    MakesASecondOne,
    MarksByProcess,
    WritesEveryTime,
    ForgetsATarget,
    KeepsOldPorts,
    IgnoresNodePorts,
    ChecksEverythingByTcp,
    IgnoresSourceRanges,
    AdoptsNamesakes,
    DeletesNamesakes,
    LeaksAfterErrors,
    StartsAnewAfterErrors,
    TakesErrorsForAbsence,
    SaysGoneAndDoesNothing,
    DeletesProtected,
    DoesWhatItPlans,
    SurveysNothing,
    MakesAnewWhatIsMissing,
    OneBadTargetBlocksAll,
    SaysItCannotDoUdp,
    // Routes
    TakesOverRoutes,
    HidesForeignRoutes,
    AnswersOnce,
    MakesRoutesAgain,
    ListsNothingOnErrors,
}
