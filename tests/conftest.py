from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("ragspan", deadline=None, derandomize=True)  # a slow machine is no wrong answer
hypothesis.settings.load_profile("ragspan")
