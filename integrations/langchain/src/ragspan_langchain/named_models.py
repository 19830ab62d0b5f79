"""Any chat model of LangChain as a judge by its name: `RAGSPAN_JUDGE=langchain:google_vertexai:gemini-2.5-flash`."""

from __future__ import annotations

from inspect import signature
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from ragspan.exceptions import ConfigurationError
from ragspan.judges import LLMJudge
from ragspan_langchain.chat_client import LangChainChatClient


def judge(model: str = "", **options: Any) -> LLMJudge:
    """A judge that asks the model which `init_chat_model` makes of this name.

    Args:
        model: a provider and a model, as `init_chat_model` takes them.
        options: of `LLMJudge`, such as `temperature`; all others are arguments of the model's class, such as `timeout`.

    Raises:
        ConfigurationError: `langchain` or the provider's package is not installed, there is no such model, or its key is
            missing. The message shows no argument's value.
    """
    name = f"langchain:{model}"
    unnamed = f"{name!r} names no model: the judge should be like 'langchain:google_vertexai:gemini-2.5-flash'"
    if not model.strip(":"):
        raise ConfigurationError(unnamed)
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise ConfigurationError(f"{name} needs the package langchain: pip install langchain") from None
    own = signature(LLMJudge).parameters.keys() - {"client", "name"}
    of_judge = {key: options.pop(key) for key in own & options.keys()}
    try:
        made: Any = init_chat_model(model, **options)
    except ValidationError as error:  # its own text quotes the arguments
        told = error.errors(include_input=False, include_context=False, include_url=False)
        raise ConfigurationError(f"{name} cannot be made: {'; '.join(one['msg'] for one in told)}") from None
    if not isinstance(made, BaseChatModel):
        raise ConfigurationError(unnamed)
    return LLMJudge(LangChainChatClient(made), name=name, **of_judge)
