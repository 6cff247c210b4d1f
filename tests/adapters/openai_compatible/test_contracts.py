"""What every LLM and every agent runner promises, over OpenAI's SDK."""

import os
from pathlib import Path

import pytest

from agl.adapters.memory.clock import ManualClock
from agl.adapters.openai_compatible import OpenAICompatibleLLM
from agl.adapters.system import SystemProcesses
from agl.adapters.worktools import WorkTools
from agl.loop.runner import LoopRunner
from agl.ports.models import ModelId
from agl.testing.contracts.agent_runner import FOREIGN_GIT, AgentAtWorkContract, RunnerOf
from agl.testing.contracts.llm import LLMContract, LLMOf
from servers.model_server import ModelServer

MODEL = ModelId("openai_compatible", "qwen")


@pytest.fixture
def llm_of(server: ModelServer) -> LLMOf:
    def made(turns: object) -> tuple[OpenAICompatibleLLM, ModelId]:
        assert isinstance(turns, list)
        session = server.session(turns, strict=False)
        return OpenAICompatibleLLM(ManualClock(), key="k", base_url=session.v1), MODEL

    return made


class TestOpenAICompatibleLLM(LLMContract):
    @pytest.fixture
    def llm_of(self, llm_of: LLMOf) -> LLMOf:
        return llm_of


class TestOpenAICompatibleAgent(AgentAtWorkContract):
    @pytest.fixture
    def runner_of(self, llm_of: LLMOf, tmp_path: Path) -> RunnerOf:
        tools = WorkTools(SystemProcesses(), {**os.environ, **FOREIGN_GIT})

        def made(turns: object) -> tuple[LoopRunner, ModelId]:
            assert isinstance(turns, list)
            llm, model = llm_of(turns)
            return LoopRunner(llm, tools), model

        return made
