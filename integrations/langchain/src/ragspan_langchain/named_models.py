"""Any chat model of LangChain as a judge by its name: `RAGSPAN_JUDGE=langchain:google_vertexai:gemini-2.5-flash`."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from ragspan.exceptions import ConfigurationError
from ragspan.judges import LLMJudge, Price
from ragspan_langchain.chat_client import LangChainChatClient

_EXAMPLE = "langchain:google_vertexai:gemini-2.5-flash"


def judge(
    model: str = "",
    *,
    temperature: float = 0.7,
    max_context_chars: int = 60_000,
    mode: Literal["one_request", "thorough"] = "one_request",
    price: Price | None = None,
    **of_model: Any,
) -> LLMJudge:
    """A judge that asks the model which `init_chat_model` makes of this name.

    Args:
        model: a provider and a model, as `init_chat_model` takes them.
        temperature: as in `LLMJudge`, and so are the next three.
        max_context_chars: see there.
        mode: see there.
        price: see there.
        of_model: further arguments of the model's class, such as `timeout`, `max_retries` or `project`.

    Raises:
        ConfigurationError: `langchain` or the provider's package is not installed, there is no such model, or its key is
            missing. The message shows no argument's value.
    """
    if not model.strip(":"):
        raise ConfigurationError(f"'langchain' names no model: the judge should be like {_EXAMPLE!r}")
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise ConfigurationError(f"langchain:{model} needs the package langchain: pip install langchain") from None
    try:
        made: Any = init_chat_model(model, **of_model)
    except ValidationError as error:  # its own text quotes the arguments
        said = "; ".join(
            one["msg"] for one in error.errors(include_input=False, include_context=False, include_url=False)
        )
        raise ConfigurationError(f"langchain:{model} cannot be made: {said}") from None
    if not isinstance(made, BaseChatModel):
        raise ConfigurationError(f"langchain:{model} names no model: the judge should be like {_EXAMPLE!r}")
    return LLMJudge(
        LangChainChatClient(made),
        name=f"langchain:{model}",
        temperature=temperature,
        max_context_chars=max_context_chars,
        mode=mode,
        price=price,
    )
