"""A worker of the fleet: takes records from the stream, scores them, and acknowledges them once their scores are exported.

    Pull ──message──► Worker ──record──► ScoringEngine ──► emitters ──► ExportLine ──► Settlement ──ack──► broker
                        │                                                                 ▲
                        └── what is no record, or has used up its deliveries ─────────────┘

`Pull`, `Worker` and `Settlement` live in one event loop, the engine and the export line in threads of their own. Where there are
native writers, `NativeScores` comes between the export line and the settlement, in one more thread. Beside them in the loop,
`Signs` tells the broker of what is in hand, `Outages` slows `Pull` down while the judge is away, and `Leftovers` tidies up after a
broker that was killed.
"""
