"""One process at a time writes into a folder."""

import subprocess
import sys

from theodolite.io.folder_lock import claim

OTHER = """
import sys
from pathlib import Path
from theodolite.io.folder_lock import claim
class Holder: pass
holder = Holder()
try:
    claim(Path(sys.argv[1]), holder)
    print("mine")
except ValueError as error:
    print(error)
"""


class Holder:
    pass


def other(folder):
    return subprocess.run([sys.executable, "-c", OTHER, str(folder)], check=True, capture_output=True, text=True).stdout


def test_a_folder_is_another_s_only_once_all_its_holders_are_gone(tmp_path):
    first, second = Holder(), Holder()
    claim(tmp_path / "run", first)
    claim(tmp_path / "run", second)
    assert "which another run is writing to" in other(tmp_path / "run")
    del first
    assert "another run" in other(tmp_path / "run")
    del second
    assert other(tmp_path / "run") == "mine\n"


def test_where_no_folder_can_be_made_nothing_is_claimed(tmp_path):
    (tmp_path / "file").write_text("")
    claim(tmp_path / "file" / "run", Holder())
