"""The providers that speak OpenAI's chat protocol: where they are, which variable has the key, and what they do not take.

`RAGSPAN_JUDGE=anthropic:claude-haiku-4-5` is the row `anthropic` and a model. To add a provider is to add a row: the judge,
`ragspan judges` and the table in `docs/judges.md` read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError

_ROWS: Final = """\
openai | OpenAI | gpt-4o-mini | {} | OPENAI_BASE_URL | https://api.openai.com/v1 | OPENAI_API_KEY | gpt,o1,o3,o4,chatgpt |
azure | Azure OpenAI | our-deployment | {}/openai/v1 | AZURE_OPENAI_ENDPOINT |  | AZURE_OPENAI_API_KEY |  |
anthropic | Anthropic | claude-haiku-4-5 | {}/v1 | ANTHROPIC_BASE_URL | https://api.anthropic.com | ANTHROPIC_API_KEY | claude | n
gemini | Google Gemini | gemini-2.5-flash | https://generativelanguage.googleapis.com/v1beta/openai |  |  | GEMINI_API_KEY,GOOGLE_API_KEY | gemini,gemma | n
mistral | Mistral | mistral-small-latest | https://api.mistral.ai/v1 |  |  | MISTRAL_API_KEY | mistral,ministral,magistral,codestral,open-mi |
groq | Groq | openai/gpt-oss-20b | https://api.groq.com/openai/v1 |  |  | GROQ_API_KEY |  | n
deepseek | DeepSeek | deepseek-chat | https://api.deepseek.com/v1 |  |  | DEEPSEEK_API_KEY | deepseek | n,schema
openrouter | OpenRouter | qwen/qwen3-32b | https://openrouter.ai/api/v1 |  |  | OPENROUTER_API_KEY |  | n
together | Together AI | openai/gpt-oss-20b | https://api.together.xyz/v1 |  |  | TOGETHER_API_KEY |  |
fireworks | Fireworks AI | accounts/fireworks/models/gpt-oss-20b | https://api.fireworks.ai/inference/v1 |  |  | FIREWORKS_API_KEY | accounts/fireworks |
xai | xAI | grok-4-fast | https://api.x.ai/v1 |  |  | XAI_API_KEY | grok |
bedrock | Amazon Bedrock | openai.gpt-oss-20b | https://bedrock-mantle.{}.api.aws/v1 | AWS_REGION,AWS_DEFAULT_REGION |  | AWS_BEARER_TOKEN_BEDROCK | openai.,amazon.,anthropic. |
ollama | Ollama | qwen3:8b | http://localhost:11434/v1 |  |  |  |  | n,key
lmstudio | LM Studio | qwen3-8b | http://localhost:1234/v1 |  |  |  |  | n,key
vllm | vLLM | Qwen/Qwen3-8B | {} |  |  | VLLM_API_KEY |  | key
litellm | a LiteLLM proxy | our-model | {} |  |  | LITELLM_API_KEY |  | key
"""
"""The fields of `Preset`; what stands in the last cell is what it does not take (n, schema) or need (key)."""
_EXAMPLES: Final = {"AZURE_OPENAI_ENDPOINT": "https://our-resource.openai.azure.com", "AWS_REGION": "us-east-1"}


class Preset(NamedTuple):
    """One provider."""

    name: str
    """Before the colon of a judge's name."""
    title: str
    example: str
    """A model's name, as this provider knows it."""
    address: str
    """Its base URL; `{}` is the value of the first of `places` that is set."""
    places: tuple[str, ...]
    """Variables that have the changing part of the address."""
    default_place: str | None
    """The changing part where none of them is set; None if there is no address then."""
    keys: tuple[str, ...]
    """Variables that may have the key; the first that is set counts."""
    families: tuple[str, ...]
    """How the names of its models begin: for advice where somebody leaves the provider out."""
    needs_key: bool
    left_out: frozenset[str]
    """Parameters that it does not take."""
    response_format: Literal["json_schema", "json_object"]
    """What it takes at most; models that take less refuse, which is learned."""

    @property
    def base_url(self) -> str | None:
        """The address as the environment completes it; None if a part is missing."""
        begin, changes, end = self.address.partition("{}")
        place = variable(*self.places) or self.default_place
        if changes and place is None:
            return None
        return begin + (place or "").rstrip("/").removesuffix(end or " ") + end if changes else begin

    @property
    def shown_address(self) -> str:
        """The address in words, with names of variables for what is not in the environment."""
        return self.address.format(self.default_place or f"{{{(*self.places, 'RAGSPAN_JUDGE_BASE_URL')[0]}}}")

    @property
    def key_variable(self) -> str | None:
        """The variable that has the key now; None if none does."""
        return next(filter(variable, self.keys), None)

    def endpoint(self, base_url: str | None, api_key: str | None) -> tuple[str, str]:
        """The address and the key of requests, or a word in its place; what is given counts first.

        Raises:
            ConfigurationError: one of them is missing; the message names the variables.
        """
        address = base_url or self.base_url
        if address is None:
            wanted = " or ".join((*self.places, "RAGSPAN_JUDGE_BASE_URL"))
            example = self.address.format(_EXAMPLES.get("".join(self.places[:1]), "http://localhost:8000/v1"))
            raise ConfigurationError(
                f"there is no address for {self.title}: set {wanted}, or give base_url=, such as {example!r}"
            )
        is_elsewhere = base_url is not None or (self.default_place is not None and variable(*self.places) is not None)
        key = api_key or variable(*self.keys)
        if not key and self.needs_key and not is_elsewhere:
            wanted = " or ".join(("RAGSPAN_JUDGE_API_KEY", *self.keys))
            raise ConfigurationError(
                f"there is no key for {self.title}: set {wanted}, or give api_key=; for a server that needs none, set "
                "RAGSPAN_JUDGE_BASE_URL or give base_url="
            )
        return address, key or "no-key"


def _preset(row: str) -> Preset:
    name, title, example, address, *cells = (cell.strip() for cell in row.split("|"))
    places, default, keys, families, lacks = (tuple(filter(None, cell.split(","))) for cell in cells)
    place, left_out = default[0] if default else None, frozenset({"n"} & {*lacks})
    kind: Literal["json_schema", "json_object"] = "json_object" if "schema" in lacks else "json_schema"
    return Preset(name, title, example, address, places, place, keys, families, "key" not in lacks, left_out, kind)


PRESETS: Final[Mapping[str, Preset]] = {one.name: one for one in map(_preset, _ROWS.splitlines())}
"""By name, in the order of the documentation."""
