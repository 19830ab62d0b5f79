"""Where the files come from, with a hub on this machine that the real client asks."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
from servers.http import LocalHttp

from ragspan.exceptions import JudgeError
from ragspan_hhem import model as files

FIND = """
import sys, time
time.sleep = lambda _: None  # the hub's client tries again and again, with longer and longer pauses
from ragspan.exceptions import JudgeError
from ragspan_hhem.model import find_files
try:
    print(*(file.read_text() for file in find_files(*sys.argv[1:])), sep="|")
except JudgeError as error:
    print(error.error_type, error, sep="|")
"""


class Hub(LocalHttp):
    """Serves every file of every repository: its text is its own path."""

    def __init__(self):
        self.asked = []
        super().__init__(self._serve)

    def _serve(self, request):
        if "/resolve/" not in request.path:  # the client has interests of its own, too
            return 404, {}, b""
        if request.method == "GET":
            self.asked.append(request.path)
        body = request.path.encode()
        tag, commit = hashlib.sha1(body, usedforsecurity=False).hexdigest(), request.path.split("/")[4]
        return 200, {"ETag": f'"{tag}"', "X-Repo-Commit": commit}, body


@pytest.fixture
def hub():
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    made = Hub()
    yield made
    made.close()


@pytest.fixture
def find(hub, tmp_path):
    """Looks for files in a process of its own, with an empty cache at first: the hub's client reads its settings once."""

    def find(model=files.MODEL, revision=files.REVISION, **environment):
        done = subprocess.run(
            [sys.executable, "-c", FIND, str(model), revision],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("HF_")},
                "HF_HOME": str(tmp_path / "cache"),
                "HF_ENDPOINT": hub.url,
                "NO_PROXY": "*",
                **environment,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip().split("|")

    return find


def test_the_published_files_are_downloaded_once_at_pinned_revisions(hub, find):
    weights = f"/{files.MODEL}/resolve/{files.REVISION}/model.safetensors"
    tokenizer = f"/{files.FOUNDATION}/resolve/{files.FOUNDATION_REVISION}/tokenizer.json"

    assert [find(), find(HF_HUB_OFFLINE="1")] == [[weights, tokenizer]] * 2
    assert hub.asked == [weights, tokenizer]


def test_a_path_without_a_folder_is_no_name_on_the_hub():
    with pytest.raises(JudgeError, match=r"there is no folder '\./nowhere'"):
        files.find_files("./nowhere", "main")


def test_nothing_is_downloaded_offline(hub, find):
    error_type, message = find(HF_HUB_OFFLINE="1")

    assert error_type == "hhem_unavailable"
    assert f"hf download {files.MODEL} model.safetensors --revision {files.REVISION}" in message
    assert "give model= a folder" in message
    assert hub.asked == []
