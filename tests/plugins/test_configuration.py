"""The configuration file: where it is, whom it trusts, what is wrong in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from armillary.errors import PluginError
from armillary.plugins import config_path, configured


def test_plugins_are_named(config: Path):
    assert configured() == ()
    config.write_text('plugins = ["acme-lifts", "other"]\n')
    assert configured() == ("acme-lifts", "other")
    config.write_text("# nothing\n")
    assert configured() == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("plugins = [", "is not TOML"),
        ("plugins = 'acme'", "must list texts"),
        ("plugins = [1]", "must list texts"),
        ("plugin = ['acme']", r"no key 'plugin'\. Did you mean 'plugins'\?"),
        ("[plugins]\nacme = true", "must list texts"),
        ("#" * (1 << 17), "more than 65536 bytes"),
    ],
)
def test_what_has_no_meaning_is_refused(config: Path, text: str, why: str):
    config.write_text(text)
    with pytest.raises(PluginError, match=rf"config\.toml .*{why}"):
        configured()


def test_bytes_that_are_not_text_are_refused(config: Path):
    config.write_bytes(b"\xff\xfe")
    with pytest.raises(PluginError, match="is not TOML"):
        configured()


def test_what_is_not_a_file_is_refused(config: Path):
    config.mkdir()
    with pytest.raises(PluginError, match="not a plain file"):
        configured()


@pytest.mark.skipif(os.name != "posix", reason="other systems keep rights elsewhere")
def test_a_file_that_others_may_change_is_not_trusted(config: Path):
    config.write_text("plugins = ['acme']\n")
    config.chmod(0o646)
    with pytest.raises(PluginError, match="may be changed by other"):
        configured()
    config.chmod(0o644)
    assert configured() == ("acme",)


@pytest.mark.skipif(os.name != "posix", reason="other systems keep rights elsewhere")
def test_a_file_of_somebody_else_is_not_trusted(
    config: Path, monkeypatch: pytest.MonkeyPatch
):
    config.write_text("plugins = ['acme']\n")
    if os.getuid() == 0:
        os.chown(config, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: config.stat().st_uid + 1)
    with pytest.raises(PluginError, match="may be changed by other"):
        configured()


def test_off_is_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_CONFIG", "off")
    assert config_path() is None
    assert configured() == ()


@pytest.mark.parametrize("value", ["config.toml", "/etc/config.toml", "on"])
def test_the_variable_can_only_take_trust_away(
    monkeypatch: pytest.MonkeyPatch, value: str
):
    monkeypatch.setenv("ARMILLARY_CONFIG", value)
    with pytest.raises(PluginError, match="can only be 'off'"):
        config_path()


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/h/.config/armillary/config.toml"),
        ("linux", {"XDG_CONFIG_HOME": "/c"}, "/c/armillary/config.toml"),
        ("linux", {"XDG_CONFIG_HOME": "c"}, "/h/.config/armillary/config.toml"),
        ("darwin", {}, "/h/Library/Application Support/armillary/config.toml"),
        ("win32", {"APPDATA": "/a"}, "/a/armillary/config.toml"),
        ("win32", {}, "/h/AppData/Roaming/armillary/config.toml"),
        ("linux", {"HOME": "h"}, None),
    ],
)
def test_the_place_is_that_of_the_platform(
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variables: dict[str, str],
    expected: str | None,
):
    for name in ("ARMILLARY_CONFIG", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in {"HOME": "/h", **variables}.items():
        monkeypatch.setenv(name, value)
    assert config_path() == (None if expected is None else Path(expected))
