import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from harness.kit import parts
from harness.kit.parts import PartsError, join, split, unpack


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "kit"
    (made / "wheels").mkdir(parents=True)
    (made / "kit.json").write_text("{}")
    (made / "wheels" / "a.whl").write_bytes(bytes(range(256)) * 4096 + b"end")
    return made


@pytest.mark.parametrize("pack", [False, True])
def test_what_was_split_is_joined(folder, tmp_path, pack):
    made = split(folder, tmp_path / "out" / "kit.tar", 0.25, pack=pack)
    assert all(part.stat().st_size <= 250_000 for part in made)
    assert (len(made) == 1) == pack  # these bytes repeat, so that packed they are few
    (joined,) = join([*made, tmp_path / "out" / "kit.tar.sha256"], tmp_path / "back")
    assert joined == tmp_path / "back" / "kit"
    assert (joined / "wheels" / "a.whl").read_bytes() == (folder / "wheels" / "a.whl").read_bytes()


def test_parts_without_a_limit_are_a_single_one(folder, tmp_path):
    assert len(split(folder, tmp_path / "kit.tar", float("inf"))) == 1


def test_each_of_several_archives_is_joined_if_all_are_whole(folder, tmp_path):
    other = folder.with_name("other")
    other.mkdir()
    (other / "a").write_text("b")
    for one in (folder, other):
        split(one, tmp_path / "out" / f"{one.name}.tar", 0.25)
    carried = sorted((tmp_path / "out").iterdir())
    back = tmp_path / "back"
    assert join(carried, back) == [back / "kit", back / "other"]
    assert (back / "other" / "a").read_text() == "b"
    (tmp_path / "out" / "other.tar.000").unlink()
    with pytest.raises(PartsError, match=r"other\.tar\.000 is missing"):
        join(carried, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_is_there_is_not_replaced(folder, tmp_path):
    other = folder.with_name("other")
    other.mkdir()
    for each in (folder, other):
        split(each, tmp_path / "out" / f"{each.name}.tar", 0.25)
    back = tmp_path / "back"
    (back / "other").mkdir(parents=True)
    with pytest.raises(PartsError, match="back/other is there already: move it away"):
        join(sorted((tmp_path / "out").iterdir()), back)
    assert [path.name for path in back.rglob("*")] == ["other"]


def zeros(place, size):
    """An archive of one file that says it has this size, packed; its bytes end before that."""
    found = member("kit/zeros", size=size)
    with tarfile.open(place, "w:xz") as archive:
        archive.addfile(member("kit", tarfile.DIRTYPE, mode=0o755))
        archive.fileobj.write(found.tobuf(archive.format) + bytes(1_000_000))
    listed = place.with_name(f"{place.name}.sha256")
    listed.write_text(parts.sums([place], place.parent))
    return listed


def test_two_archives_of_a_folder_of_one_name_are_refused_before_the_first_is_unpacked(folder, tmp_path):
    lists = [tmp_path / place / "kit.tar.sha256" for place in ("monday", "tuesday")]
    for listed in lists:
        split(folder, listed.with_suffix(""), 0.25)
    for given in (lists, lists[:1] * 2):
        with pytest.raises(PartsError, match="two of these archives hold kit: "):
            join(given, tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.usefixtures("any_python")
@pytest.mark.parametrize(
    ("size", "says"), [(1 << 60, "1,152,921,504,607 MB, and"), (2_000_000, "unexpected end")]
)
def test_what_does_not_fit_or_ends_early_leaves_nothing(tmp_path, size, says):
    listed = zeros(tmp_path / "kit.tar.xz", size)
    with pytest.raises(PartsError, match=says):
        join([listed], tmp_path / "back")
    assert list((tmp_path / "back").iterdir()) == []


def test_a_damaged_part_is_named_and_nothing_is_unpacked(folder, tmp_path):
    made = split(folder, tmp_path / "kit.tar", 0.25)
    content = bytearray(made[1].read_bytes())
    content[7] ^= 1
    made[1].write_bytes(content)
    with pytest.raises(PartsError, match=r"kit\.tar\.001 is damaged"):
        join([*made, tmp_path / "kit.tar.sha256"], tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_missing_part_and_a_missing_list_are_named(folder, tmp_path):
    made = split(folder, tmp_path / "kit.tar", 0.25)
    made[2].unlink()
    with pytest.raises(PartsError, match=r"kit\.tar\.002 is missing"):
        join([tmp_path / "kit.tar.sha256"], tmp_path / "back")
    with pytest.raises(PartsError, match=r"NAME\.sha256"):
        join(made[:2], tmp_path / "back")


def test_a_list_that_is_no_text_is_damaged(folder, tmp_path):
    made = split(folder, tmp_path / "kit.tar", 0.25)
    listed = tmp_path / "kit.tar.sha256"
    listed.write_bytes(b"\xff" + listed.read_bytes())
    with pytest.raises(PartsError, match=r"kit\.tar\.sha256 is damaged"):
        join([*made, listed], tmp_path / "back")


def test_the_file_alone_joins_where_there_is_no_bench(folder, tmp_path):
    place = tmp_path / "carried"
    split(folder, place / "kit.tar", 0.25)
    (place / "join.py").write_bytes(Path(parts.__file__).read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(place / "join.py")], capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == place / "kit"
    assert (place / "kit" / "kit.json").read_text() == "{}"


@pytest.fixture(params=["this Python", "before 3.11.4"])
def any_python(request, monkeypatch):
    if request.param != "this Python":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        # Since Python 3.14 the filter is the default, too.
        monkeypatch.setattr(tarfile.TarFile, "extraction_filter", staticmethod(_unfiltered), raising=False)


def _unfiltered(member, _folder):
    return member


def archived(place, *members):
    with tarfile.open(place, "w") as archive:
        for member in members:
            archive.addfile(member)
    return place


def member(name, kind=tarfile.REGTYPE, **values):
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in values.items():
        setattr(made, key, value)
    return made


@pytest.mark.usefixtures("any_python")
@pytest.mark.parametrize(
    "bad",
    [
        member("../outside"),
        member("in/../../outside"),
        member("outside", tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("outside", tarfile.LNKTYPE, linkname="../other"),
        member("outside", tarfile.FIFOTYPE),
        member("outside", tarfile.CHRTYPE),
    ],
    ids=lambda bad: f"{bad.name} {bad.type.decode()}",
)
def test_what_leads_out_of_the_folder_is_refused(tmp_path, bad):
    place = archived(tmp_path / "bad.tar", bad)
    with place.open("rb") as archive, pytest.raises(PartsError, match="outside"):
        unpack(archive, tmp_path / "in")
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "in" / "outside").is_symlink()


@pytest.mark.usefixtures("any_python")
def test_a_run_that_was_carried_is_still_its_owners_alone(folder, tmp_path):
    """Run folders have mode 0700. Their parts lay open, and so did what was joined."""
    (folder / "run").mkdir(mode=0o700)
    made = split(folder, tmp_path / "kit.tar.xz", 16, pack=True)
    assert [part.stat().st_mode & 0o777 for part in made] == [0o600]
    (joined,) = join([*made, tmp_path / "kit.tar.xz.sha256"], tmp_path / "back")
    assert (joined / "run").stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("any_python")
def test_programs_stay_programs_and_nothing_runs_as_another_user(tmp_path):
    members = (member("kit", tarfile.DIRTYPE, mode=0o777), member("kit/run", mode=0o4755))
    place = archived(tmp_path / "kit.tar", *members, member("kit/page", mode=0o666))
    with place.open("rb") as archive:
        assert unpack(archive, tmp_path / "in") == "kit"
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "in" / "kit").iterdir()}
    assert modes == {"run": 0o755, "page": 0o644}
