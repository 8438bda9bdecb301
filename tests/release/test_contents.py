"""A wheel that is not what it may be is refused, and told why."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parents[2]
GOOD = "sparsebert-0.1.0-py3-none-manylinux_2_28_x86_64.whl"


@pytest.fixture
def contents() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contents", PROJECT / "release" / "contents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel(folder: Path, name: str, *libraries: str) -> Path:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for library in ("sparsebert/__init__.py", *libraries):
            archive.writestr(library, b"")
    return folder / name


def asking_for(*names: str) -> object:
    return lambda library: set(names)


def test_a_wheel_with_the_kernel_alone_is_taken(
    contents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "needs", asking_for("libgomp.so.1", "libc.so.6", "ld-linux-x86-64.so.2"))
    assert contents.problems(wheel(tmp_path, GOOD, contents.KERNEL)) == []


@pytest.mark.parametrize("platform", ["cp311-cp311-manylinux_2_28_x86_64", "py3-none-linux_x86_64", "py3-none-any"])
def test_a_wheel_for_one_python_or_for_this_machine_alone_is_refused(
    contents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(contents, "needs", asking_for("libgomp.so.1"))
    (said,) = contents.problems(wheel(tmp_path, f"sparsebert-0.1.0-{platform}.whl", contents.KERNEL))
    assert "expected py3-none and a manylinux platform" in said


@pytest.mark.parametrize(
    "libraries", [(), ("sparsebert/attention/_sparse_kernel.so", "sparsebert.libs/libgomp-1.so.1")]
)
def test_a_wheel_without_a_kernel_or_with_a_second_openmp_is_refused(
    contents: ModuleType, tmp_path: Path, libraries: tuple[str, ...]
) -> None:
    (said,) = contents.problems(wheel(tmp_path, GOOD, *libraries))
    assert "expected sparsebert/attention/_sparse_kernel.so alone" in said


@pytest.mark.parametrize(
    ("needed", "said"),
    [(("libgomp.so.1", "libcudart.so.13"), "asks for libcudart.so.13"), (("libc.so.6",), "not share torch's copy")],
)
def test_a_kernel_that_asks_for_something_foreign_is_refused(
    contents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needed: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr(contents, "needs", asking_for(*needed))
    assert [said in problem for problem in contents.problems(wheel(tmp_path, GOOD, contents.KERNEL))] == [True]


def test_what_the_built_kernel_asks_for_is_read_from_it(contents: ModuleType) -> None:
    pytest.importorskip("elftools", reason="needs pyelftools, which comes with the tools of `make wheel`")
    kernel = PROJECT / "src" / contents.KERNEL
    if not kernel.is_file():
        pytest.skip("the C++ kernel was not built: no C++ compiler")
    needed = contents.needs(kernel.read_bytes())
    assert "libgomp.so.1" in needed
    assert needed <= contents.ALLOWED | contents.LOADERS
