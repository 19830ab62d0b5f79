"""What ragspan takes of a process: time to import it, and memory beside a program's own.

    python benchmarks/footprint.py [--answers N] [--json FILE]
    python benchmarks/against.py --pairs 11 --this-program ../before footprint.py

Each figure is of a new process. The memory is that of the helper and what a LangChain program has more than without ragspan, with
`configure()` and its default engine, after all its answers are scored.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

MODULES = ("ragspan", "ragspan_langchain", "ragspan_llama_index")
IMPORT = "import time; began = time.process_time(); import {}; print(1000 * (time.process_time() - began))"
PROGRAM = """
import subprocess, sys
from pathlib import Path
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
import opentelemetry.sdk.trace, opentelemetry.sdk.metrics

TEXT = "Beta settles card payments after midnight, at the rate of the day on which they were made. "

def resident(process):
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 1e6

if sys.argv[2] == "with":
    import ragspan
    configured = ragspan.configure()
search = RunnableLambda(lambda question: [Document(TEXT * 10, id=str(number)) for number in range(4)])
prompt = ChatPromptTemplate.from_template("{context} {question}")
chain = {"context": search, "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=[TEXT])
for _ in range(int(sys.argv[1])):
    chain.invoke("When are card payments settled?")
if sys.argv[2] == "with":
    assert ragspan.default_engine().flush(60)
threads = Path("/proc/self/task").iterdir()
helpers = [each for thread in threads for each in (thread / "children").read_text().split()]
print(resident("self"), sum(map(resident, helpers)), file=sys.stderr)
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    figures = {f"import {module}, ms of processor time": float(run(IMPORT.format(module)).stdout) for module in MODULES}
    memory: dict[str, list[float]] = {}
    for name in ("without", "with"):
        last = run(PROGRAM, str(options.answers), name).stderr.splitlines()[-1]
        memory[name] = [float(part) for part in last.split()]
    figures["application, MB beside its own"] = memory["with"][0] - memory["without"][0]
    figures["helper, MB"] = memory["with"][1]
    for name, value in figures.items():
        print(f"{value:8.1f}  {name}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
