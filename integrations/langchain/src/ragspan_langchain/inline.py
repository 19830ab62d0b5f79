"""Keeps our inline handler from silencing the handlers beside it.

LangChain's asynchronous manager tells the inline handlers that a plain language model starts or, where there is none, the
others; every other event goes to all. So one inline handler takes that event from all that are not. Ours has to be inline:
any other form costs a task or a thread for each event, each token too. Hence where nobody but us is inline, LangChain is
asked to call the others as if we were not there, and we are called afterwards.
"""

from __future__ import annotations

import copy
import functools
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.manager import AsyncCallbackManager, AsyncCallbackManagerForLLMRun, ahandle_event

from ragspan_langchain.handler import RagspanCallbackHandler

_original = AsyncCallbackManager.on_llm_start


@functools.wraps(_original)
async def _on_llm_start(
    self: AsyncCallbackManager,
    serialized: dict[str, Any],
    prompts: list[str],
    run_id: UUID | None = None,
    **about: Any,
) -> list[AsyncCallbackManagerForLLMRun]:
    handlers = self.handlers
    others = [each for each in handlers if not isinstance(each, RagspanCallbackHandler)]
    if not others or len(others) == len(handlers) or any(each.run_inline for each in others):
        return await _original(self, serialized, prompts, run_id, **about)
    without_us = copy.copy(self)
    without_us.handlers = others
    runs = await _original(without_us, serialized, prompts, run_id, **about)
    ours: list[BaseCallbackHandler] = [each for each in handlers if isinstance(each, RagspanCallbackHandler)]
    for prompt, run in zip(prompts, runs, strict=True):
        run.handlers = handlers
        await ahandle_event(
            ours,
            "on_llm_start",
            "ignore_llm",
            serialized,
            [prompt],
            run_id=run.run_id,
            parent_run_id=run.parent_run_id,
            tags=self.tags,
            metadata=self.metadata,
            **about,
        )
    return runs


def leave_others_alone() -> None:
    """Make LangChain's asynchronous managers call the other handlers as they do without ours; once is enough."""
    AsyncCallbackManager.on_llm_start = _on_llm_start  # type: ignore[method-assign]
