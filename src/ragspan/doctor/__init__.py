"""`ragspan doctor`: for somebody who sees no scores and has five minutes.

It reads the settings and what `OTEL_*` configures. Then it sends one real record through everything that the application
would use, watches it, and says what that shows about the judge, the endpoint and the record. A check returns findings and
prints nothing. No finding holds a key, the value of a header, or a text of a user's.
"""

from __future__ import annotations

from ragspan.doctor.examination import examine
from ragspan.doctor.findings import CHECKS, Check, Diagnosis, Finding, State, exit_code

__all__ = ["CHECKS", "Check", "Diagnosis", "Finding", "State", "examine", "exit_code"]
