"""Data flows left to right, and so do imports."""

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sparsebert"
ORDER = [
    "errors",
    "settings",
    "memory",
    "files",
    "locks",
    "progress",
    "draws",
    "text",
    "batches",
    "patterns",
    "attention",
    "layers",
    "gates",
    "model",
    "importance",
    "training",
    "embeddings",
    "exporting",
    "tasks",
    "runs",
    "studies",
    "report",
    "cli",
]
# Theory stands on attention alone; no package but the command line may use it.
THEORY_MAY_USE = ORDER[: ORDER.index("attention") + 1]


def packages() -> list[str]:
    return sorted({path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")})


def imported_packages(path: Path) -> Iterator[str]:
    """First level names under sparsebert that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "sparsebert":
            parts = node.module.split(".")[1:]
            yield from parts[:1] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("sparsebert."))


def allowed(package: str) -> set[str]:
    if package == "theory":
        return {"theory", *THEORY_MAY_USE}
    if package == "cli":
        return {*ORDER, "theory", "__version__"}
    return set(ORDER[: ORDER.index(package) + 1])


def modules() -> dict[str, Path]:
    """Every module by its full name; a package goes by its __init__.py."""
    paths = {path: path.relative_to(SOURCE.parent).with_suffix("") for path in SOURCE.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for path, name in paths.items()}


def imported_modules(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """Modules that run when this code does, lazy imports too; an import for the type checker alone never runs."""
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        return
    if isinstance(tree, ast.ImportFrom) and tree.module:
        names = {f"{tree.module}.{alias.name}" for alias in tree.names}
        yield from names & known.keys()
        if names - known.keys():  # what is no module is taken from the package itself
            yield tree.module
    elif isinstance(tree, ast.Import):
        yield from (alias.name for alias in tree.names)
    for node in ast.iter_child_nodes(tree):
        yield from imported_modules(node, known)


def first_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


@pytest.mark.parametrize(
    "package", [name for name in packages() if name not in ("__init__", "__main__", "registration")]
)
def test_a_package_imports_itself_and_packages_to_its_left(package: str) -> None:
    files = (
        [SOURCE / f"{package}.py"] if (SOURCE / f"{package}.py").is_file() else list((SOURCE / package).rglob("*.py"))
    )
    strays = {
        f"{file.relative_to(SOURCE)} imports {name}"
        for file in files
        for name in imported_packages(file)
        if name not in allowed(package)
    }
    assert strays == set()


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = modules()
    graph = {name: {*imported_modules(ast.parse(path.read_text()), known)} & {*known} for name, path in known.items()}
    assert sum(map(len, graph.values())) > len(graph)
    assert " -> ".join(first_cycle(graph)) == ""


def test_a_lazy_import_closes_a_cycle_and_one_for_the_type_checker_does_not() -> None:
    known = {"sparsebert.a": 0, "sparsebert.b": 0}
    there = {"sparsebert.a": {"sparsebert.b"}}
    lazy = ast.parse("def later():\n    from sparsebert import a")
    typed = ast.parse("if TYPE_CHECKING:\n    from sparsebert.a import A")
    assert first_cycle(there | {"sparsebert.b": {*imported_modules(lazy, known)}})
    assert not first_cycle(there | {"sparsebert.b": {*imported_modules(typed, known)}})


def test_attention_backends_do_not_import_each_other() -> None:
    backends = {"reference", "sdpa", "gated", "sparse", "flex", "triton"}
    for backend in backends:
        path = SOURCE / "attention" / f"{backend}.py"
        if not path.is_file():
            continue
        used = {
            node.module.split(".")[-1]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sparsebert.attention.")
        }
        assert not used & (backends - {backend}), f"{backend} imports {used}"


def test_what_judges_does_not_know_how_it_is_shown() -> None:
    judging = list((SOURCE / "report" / "judging").glob("*.py"))
    assert judging
    assert not [path.name for path in judging if "report.rendering" in path.read_text()]


def test_what_stands_below_the_command_line_names_no_option() -> None:
    """Docstrings aside: whoever calls a run from Python has no option to give."""
    lower = ORDER[ORDER.index("batches") : ORDER.index("runs") + 1]
    for file in (file for package in lower for file in (SOURCE / package).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        words = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in words:
                option = re.search(r"(?<![-\w])--[a-z][a-z-]*(?![-\w.])", node.value)
                assert not option, f"{file.relative_to(SOURCE)}: {node.value}"


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    assert not [path for path in SOURCE.rglob("*.py") if path.stem in ("utils", "common", "helpers")]


def test_no_two_classes_share_a_name() -> None:
    """One word, one meaning; a leading underscore does not make it another word."""
    found: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_no_file_and_no_function_is_too_long_to_read() -> None:
    long = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        long += [f"{path.relative_to(SOURCE)}: {text.count(chr(10))} lines"] * (text.count("\n") > 400)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 60:
                long.append(f"{path.relative_to(SOURCE)}: {node.name}")
    assert long == []
