"""Each Python interpreter that a program under `ragspan run` starts imports this: see `ragspan.children`.

It imports nothing, and waits until the program imports what can answer. The interpreter may be one of another environment, without
ragspan, and of any release.
"""

# ruff: noqa: INP001 - a folder on the search path, not a package
import importlib
import os
import sys
from types import ModuleType
from typing import Any


class Watch:
    """Has this process configured when one of these modules has been imported; once."""

    def __init__(self, modules: "list[str]") -> None:
        self._modules = {"ragspan", *modules}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """What the other finders say, with a loader that tells us."""
        if name not in self._modules or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_configure(module: ModuleType) -> None:
            load(module)
            if module.__name__ == name:
                del loader.exec_module
                configure()

        loader.exec_module = load_and_configure
        return spec


def run_hidden() -> None:
    """Import the sitecustomize that this one hides, in its place."""
    this, folder = sys.modules.pop("sitecustomize"), os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]  # noqa: PTH100
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", this)


def configure() -> None:
    """Never raises."""
    try:
        from ragspan.children import configure_child
    except Exception as error:  # noqa: BLE001
        sys.stderr.write(f"ragspan run: the answers of {sys.executable} are not scored: {error}\n")
    else:
        configure_child()


def is_ragspan() -> bool:
    """Whether this is a command of ragspan's own, which configures itself. What is run stands before its arguments."""
    words = getattr(sys, "orig_argv", [""])
    return os.path.basename(words[-len(sys.argv)]) in {"ragspan", "ragspan.exe", "ragspan.cli"}  # noqa: PTH119


try:
    run_hidden()
finally:
    if not is_ragspan():
        sys.meta_path.insert(0, Watch(os.environ.get("_RAGSPAN_RUN", "").split(os.pathsep)[1:]))
