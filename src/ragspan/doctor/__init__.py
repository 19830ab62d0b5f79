"""`ragspan doctor`: for somebody who sees no scores and has five minutes.

Five checks follow the path of a score: the settings, the judge, what `OTEL_*` configures, the endpoint, and one real
record through all of them. A check returns findings and prints nothing; what is shown is the report's business. No
finding holds a key, the value of a header, or a text of a user's.
"""

from __future__ import annotations

from ragspan.doctor.examination import examine
from ragspan.doctor.findings import CHECKS, Check, Diagnosis, Finding, State, exit_code

__all__ = ["CHECKS", "Check", "Diagnosis", "Finding", "State", "examine", "exit_code"]
