"""What a chat endpoint understands of the protocol, learnt from its complaints.

Endpoints that call themselves compatible lack one thing or another: schemas or JSON mode, several choices, temperatures
(OpenAI's own reasoning models). They answer 400 or 422 and name the parameter, and the request is made again without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The optional parameters that an endpoint takes."""

    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    several_choices: bool = True
    temperature: bool = True

    def parameters(self, *, schema: Mapping[str, Any], n: int, temperature: float) -> dict[str, Any]:
        """The parameters of a request, as far as the endpoint takes them."""
        parameters: dict[str, Any] = {}
        if self.response_format == "json_schema":
            json_schema = {"name": "answer", "strict": True, "schema": schema}
            parameters["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        elif self.response_format == "json_object":
            parameters["response_format"] = {"type": "json_object"}
        if self.several_choices and n > 1:
            parameters["n"] = n
        if self.temperature:
            parameters["temperature"] = temperature
        return parameters

    def without(self, complaint: str, parameter: str | None) -> Dialect | None:
        """The dialect of an endpoint that complains; None if it is about nothing that can be left out.

        Args:
            complaint: the error's message.
            parameter: what the error names as its cause, if anything.
        """
        cause = parameter or complaint
        if self.response_format != "none" and _ABOUT_FORMAT.search(cause):
            simpler: Literal["json_object", "none"] = "json_object" if self.response_format == "json_schema" else "none"
            return replace(self, response_format=simpler)
        if self.temperature and _ABOUT_TEMPERATURE.search(cause):
            return replace(self, temperature=False)
        if self.several_choices and (parameter == "n" or (parameter is None and _ABOUT_CHOICES.search(complaint))):
            return replace(self, several_choices=False)
        return None


_ABOUT_FORMAT = re.compile(r"response_format|schema|json_object|\btool_choice\b|\btools?\b")
"""Frameworks hand a schema over as a tool where an endpoint knows no other way."""
_ABOUT_TEMPERATURE = re.compile(r"temperature")
_ABOUT_CHOICES = re.compile(r"""["'`]n["'`]|\bn (?:must|should|is|>|=)|\bparameter:? n\b|best_of""")
