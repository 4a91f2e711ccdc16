"""`translate template` writes the config of the repository and replaces no file."""

from __future__ import annotations

from translate import cli


def test_the_packaged_template_equals_the_config_of_the_repository(request, tmp_path, capsys):
    expected = request.config.rootpath / "configs" / "own.yaml"
    file = tmp_path / "my.yaml"
    assert cli.main(["template", str(file)]) == 0
    assert file.read_bytes() == expected.read_bytes()
    assert cli.main(["template"]) == 0
    assert capsys.readouterr().out == expected.read_text(encoding="utf-8")


def test_an_existing_file_is_not_replaced(tmp_path, capsys):
    file = tmp_path / "my.yaml"
    file.write_text("mine")
    assert cli.main(["template", str(file)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert file.read_text() == "mine"


# F10
def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    for path in (tmp_path / "none" / "my.yaml", tmp_path / ("n" * 256)):
        assert cli.main(["template", str(path)]) == 1
        assert capsys.readouterr().err.startswith(f"translate: cannot write {path}: ")
