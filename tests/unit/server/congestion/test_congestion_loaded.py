"""Loading and removing the controllers, with a bpftool that plays the kernel; by the real one: ``tests/lab/test_congestion.py``."""

import pytest

from tandem_server import congestion
from tandem_server.congestion import CongestionError, check, load, refusal, unload

BPFTOOL = """#!/bin/sh
# Each registered map is a file NUMBER with "NAME STATE"; `broken` names what register leaves out.
cd "{folder}" && shift
case "$1 $2" in
    "struct_ops show")
        sep='['
        for file in [0-9]*; do
            [ -e "$file" ] || continue
            read -r name state <"$file"
            printf '%s{{"id":%s,"name":"%s","kernel_struct_ops":"tcp_congestion_ops"}}' "$sep" "$file" "$name"
            sep=,
        done
        if [ "$sep" = '[' ]; then echo '[]'; else echo ']'; fi ;;
    "struct_ops dump") read -r name state <"$4"; printf '{{"bpf_map_info":{{}}}},{{"state":"BPF_STRUCT_OPS_STATE_%s"}}' "$state" ;;
    "struct_ops register")
        number=50
        for name in lia olia balia; do
            number=$((number + 1))
            [ "$name" = "$(cat broken 2>/dev/null)" ] || echo "tandem_$name INUSE" >$number
        done ;;
    "struct_ops unregister") rm "$4" ;;
esac
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """The folder with its maps; the object is ``object``, its type information ``btf``."""
    folder = tmp_path / "maps"
    folder.mkdir()
    tool = tmp_path / "bin/bpftool"
    tool.parent.mkdir()
    tool.write_text(BPFTOOL.format(folder=folder))
    tool.chmod(0o755)
    for name in ("object", "btf"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "available").write_text("reno cubic\n")
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setattr(congestion.os, "geteuid", lambda: 0)
    monkeypatch.setattr(congestion, "LOADED", tmp_path / "run/loaded.json")
    monkeypatch.setattr(congestion, "_AVAILABLE", tmp_path / "available")
    monkeypatch.setattr(congestion, "refusal", lambda file: refusal(file, tmp_path / "btf"))
    return folder


def test_an_object_that_lacks_one_leaves_none(kernel, tmp_path):
    (kernel / "broken").write_text("olia")
    with pytest.raises(CongestionError, match="has no olia; hint: build it again"):
        load(tmp_path / "object")
    assert {file.name for file in kernel.iterdir()} == {"broken"}
    assert not congestion.LOADED.exists()


@pytest.mark.usefixtures("kernel")
def test_each_thing_that_is_missing_is_one_line_with_a_hint(tmp_path, monkeypatch):
    cases = {
        r"no type information .*; hint: Debian's": lambda: refusal(tmp_path / "object", tmp_path / "none"),
        r"none: not built; hint: make -C server/congestion": lambda: congestion.refusal(tmp_path / "none"),
    }
    for said, why in cases.items():
        with pytest.raises(CongestionError, match=said):
            raise CongestionError(why())
    load(tmp_path / "object")
    with pytest.raises(CongestionError, match="loaded already; hint: tandem-server congestion unload"):
        check(tmp_path / "object")
    unload()
    (tmp_path / "available").write_text("reno cubic lia\n")
    with pytest.raises(CongestionError, match="this kernel has lia of its own; hint: "):
        check(tmp_path / "object")
    monkeypatch.setattr(congestion.os, "geteuid", lambda: 1000)
    with pytest.raises(CongestionError, match=r"only root .*; hint: sudo"):
        unload()
    monkeypatch.setattr(congestion.shutil, "which", lambda *_, **__: None)
    with pytest.raises(CongestionError, match="bpftool not found; hint: apt-get install bpftool"):
        check(tmp_path / "object")
