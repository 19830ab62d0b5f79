"""Each Python interpreter that a program under `ragspan run` starts imports this; it may be of any release, and without ragspan.

The process is configured once, when it has imported a framework or ragspan, so that helpers that answer nothing stay as they are.
"""

# ruff: noqa: INP001, PTH100, PTH109, PTH119, PTH120 - a folder on the search path, not a package; pathlib is slow to import
import importlib
import os
import sys
from typing import Any

program_folder, *frameworks = os.environ.get("_RAGSPAN_RUN", "").split(os.pathsep)


class Watch:
    """Has this process configured when ragspan or a framework has been imported; once."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """What the other finders say, with a loader that configures afterwards."""
        if name not in {"ragspan", *frameworks} or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        loader: Any = spec.loader
        load = loader.exec_module

        def load_and_configure(module: Any) -> None:
            load(module)
            if module.__name__ == name:
                del loader.exec_module
                configure()

        loader.exec_module = load_and_configure
        return spec


def configure() -> None:
    """What `ragspan run` does in its own process, with the same folders to find modules in. Never raises."""
    search_path = sys.path[:]
    try:
        from ragspan import application

        sys.path += [program_folder or ".", os.getcwd()]
        application.configure()
    except Exception as error:  # noqa: BLE001 - the process is the program's
        sys.stderr.write(f"ragspan run: the answers of process {os.getpid()} are not scored: {error}\n")
    finally:
        sys.path[:] = search_path


this, folder = sys.modules.pop("sitecustomize"), os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
try:
    importlib.import_module("sitecustomize")  # the one that this one hides, in its place
except ImportError as error:
    if error.name != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", this)
    # What is run stands before its arguments. ragspan's own commands configure themselves.
    words = getattr(sys, "orig_argv", [""])
    if os.path.basename(words[-len(sys.argv)]) not in {"ragspan", "ragspan.exe", "ragspan.cli"}:
        sys.meta_path.insert(0, Watch())
