"""Specifications of projects are read as Spark reads them, or refused with the place and the remedy, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="PyYAML is not installed; pip install 'freshviews[spark]'")

from freshviews.cli.source import ReadError
from freshviews.cli.stopping import Stopping
from freshviews.errors import FreshviewsError
from freshviews.spark.declarative.example import write_project
from freshviews.spark.declarative.spec import ProjectError, read_spec
from freshviews.spark.declarative.state import begin_state, keep_state, root_of
from tests.cli.sales import commit, sale
from tests.cli.test_commands import run

GOOD = """\
name: shop
storage: file:///tmp/storage
schema: sales
configuration: {spark.sql.ansi.enabled: "true"}
libraries:
  - glob: {include: a.sql}
  - glob: {include: more/**}
"""


def spec_of(folder: Path, text: str) -> str:
    file = folder / "spark-pipeline.yml"
    file.write_text(text)
    return str(file)


def test_the_fields_of_a_specification_are_read(tmp_path: Path) -> None:
    found = read_spec(spec_of(tmp_path, GOOD))
    assert (found.name, found.storage, found.catalog, found.database) == ("shop", "file:///tmp/storage", None, "sales")
    assert found.includes == ("a.sql", "more/**/*")
    assert not found.recomputes


def test_files_below_a_folder_of_a_project_are_found(tmp_path: Path) -> None:
    found = read_spec(spec_of(tmp_path, GOOD))
    deep = tmp_path / "more" / "deep" / "__pycache__"
    deep.mkdir(parents=True)
    for file in (tmp_path / "a.sql", deep / "c.pyc", deep.parent / "b.py"):
        file.write_text("")
    assert [path.name for path in found.files()] == ["a.sql", "b.py"]
    assert found.without_files() == []
    (tmp_path / "a.sql").unlink()
    assert found.without_files() == ["a.sql"]
    (tmp_path / "more" / "notes.txt").write_text("")
    with pytest.raises(ProjectError, match=r"notes\.txt: a file of definitions ends with \.sql or \.py; move"):
        found.files()


NAME = "name: a\nstorage: file:///s\n"
BOMB = NAME + "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "a specification has the fields name, storage"),
        ("- a", "a specification has the fields name, storage"),
        ("name: a", "the field storage is missing"),
        ("name: a\nstorage: s", "storage: s has no scheme; an absolute address such as file://"),
        ("name: 1\nstorage: file:///s", "name: text is expected, not 1; write it in quotes"),
        ("name: ''\nstorage: file:///s", "the field name is empty"),
        (NAME + "target: b", "unknown field target; a specification has the fields"),
        (NAME + "configuration: [a]", "configuration: names with values are expected"),
        (NAME + "configuration: {a: 1}", "the value of a is of type int, not text; write it in quotes"),
        (NAME + "configuration: {1: a}", "the name 1 is not text"),
        (NAME + "configuration: {freshviews.unsupported: skip}", "freshviews.unsupported is skip; it must be refuse"),
        (NAME + "libraries: a.sql", "libraries: entries of the form"),
        (NAME + "libraries: [{file: {path: a.sql}}]", "libraries: entries of the form"),
        (NAME + "libraries: [{glob: {include: a/*.sql}}]", "the pattern a/*.sql is not supported; name"),
        (NAME + "libraries: [{glob: {include: a/**/*.sql}}]", "is not supported; name a file, or a folder"),
        (NAME + "libraries: [{glob: {include: ../other/**}}]", "is outside the folder of the project"),
        (NAME + "libraries: [{glob: {include: /etc/passwd}}]", "is outside the folder of the project"),
        (NAME + "a: [", ":3:5: not YAML"),
        (NAME + "a: !!python/object/apply:os.system [ls]", "not YAML"),
        (NAME + "a: 2026-99-99", "not YAML"),
        (BOMB, "the alias *a is refused; write the value out"),
        (NAME + "a: " + "[" * 5000, "more than 20 levels"),
    ],
)
def test_a_wrong_specification_is_refused_with_the_remedy(text: str, message: str, tmp_path: Path) -> None:
    name = spec_of(tmp_path, text)
    with pytest.raises(ProjectError) as found:
        read_spec(name)
    assert str(found.value).startswith(name)
    assert message in str(found.value)


def test_an_unreadable_specification_is_refused(tmp_path: Path) -> None:
    name = spec_of(tmp_path, NAME + "# " + "x" * 1_000_001)
    with pytest.raises(ProjectError, match="longer than 1000000 bytes"):
        read_spec(name)
    Path(name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProjectError, match="not UTF-8 text; a specification in YAML is accepted"):
        read_spec(name)
    with pytest.raises(ProjectError, match=f"no such file; name {name}, or create a project with freshviews init NAME"):
        read_spec(str(tmp_path / "none.yml"))


def test_a_project_without_files_is_refused_with_its_patterns(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, GOOD)
    for command in ("run", "check", "explain"):
        message = f"{spec}: no file matches a.sql, more/** under libraries; write definitions into .sql and .py files, "
        assert run(command, spec).stderr.startswith(message)


def test_commands_on_a_project_read_the_checkpoint_of_its_last_run(tmp_path: Path) -> None:
    spec = write_project(str(tmp_path / "shop"))
    root = root_of(read_spec(str(spec)))
    none = run("status", spec)
    assert (none.exit_code, none.stderr) == (1, f"{root.address} has no version yet; run the pipeline first\n")
    commit(root.local / "first", None, [sale(1, "nut")])
    begin_state(root, "first")
    commit(root.local / "second", None, [sale(1, "cog")])
    begin_state(root, "second")
    query = ("query", spec, "SELECT part FROM by_part")
    assert run(*query).stdout.split() == ["part", "nut"]
    keep_state(root, "second")
    assert run(*query).stdout.split() == ["part", "cog"]
    assert run("status", spec).stdout.startswith("version 1 (not running)")
    assert not (root.local / "first").exists()


def test_commands_report_the_error_in_a_project_file(tmp_path: Path) -> None:
    missing = tmp_path / "none.yml"
    assert run("serve", missing).stderr.startswith(f"{missing}: no such file; ")
    name = spec_of(tmp_path, GOOD.replace("file:///tmp/storage", "dbfs:/storage"))
    refused = f"{name}: storage: checkpoint dbfs:/storage/_freshviews: addresses that begin with dbfs: are not"
    assert run("status", name).stderr.startswith(refused)


def test_ctrl_c_while_spark_starts_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

    def interrupted(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    def ended(stopping: Stopping) -> None:
        raise ReadError(stopping._at_once())

    monkeypatch.setattr("freshviews.spark.session.start_session", interrupted)
    monkeypatch.setattr(Stopping, "end", ended)
    spec = write_project(str(tmp_path / "shop"))
    stopped = f"stopped; nothing is lost, the next freshviews run {spec} continues"
    assert run("run", spec).stderr == f"starting Spark\n{stopped}\n"
    assert run("check", spec).stderr == run("explain", spec).stderr == "stopped; no table was changed\n"


def test_the_init_command_overwrites_no_file(tmp_path: Path) -> None:
    spec = read_spec(str(write_project(str(tmp_path / "a shop: 'x' # 1"))))
    assert spec.name == "a shop: 'x' # 1"
    assert spec.storage == f"file://{spec.folder}/pipeline-storage"
    assert sorted(path.name for path in spec.files()) == ["orders.py", "views.sql"]
    for name in (str(spec.folder), "", "a\0b"):
        with pytest.raises(FreshviewsError):
            write_project(name)


def test_projects_refuse_options_of_scripts() -> None:
    for words, message in (
        (("advise", "spark-pipeline.yml", "--stream", "x"), "spark-pipeline.yml: a declarative project is not"),
        (("explain", "spark-pipeline.yml", "--cells", "2"), "--cells is for a script; leave it out"),
        (("explain", "shop.sql", "--conf", "a=b"), "--conf is for a project, spark-pipeline.yml"),
        (("run", "spark-pipeline.yml", "--checkpoint", "x"), "--checkpoint is for a script; leave it out"),
        (("run", "shop.sql", "--full-refresh-all"), "--full-refresh-all is for a project, spark-pipeline.yml"),
        (("check", "spark-pipeline.yml", "--cells", "2"), "--cells is for a script"),
        (("run", "none.yml"), "none.yml: no such file; create a project with freshviews init NAME"),
    ):
        done = run(*words)
        assert done.exit_code == 1 and message in done.stderr, done.stderr
