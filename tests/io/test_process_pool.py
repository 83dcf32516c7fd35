"""Work in copies of the process: all results, in order, each done once; a copy that is lost loses nothing."""

import os
import subprocess
import sys
import textwrap

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="copies of a process are made on Linux only")


def told(program):
    """What a program without torch prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@linux
def test_every_task_is_done_once_by_two_processes_and_comes_in_order():
    found = told(
        """
        import os, time
        from theodolite.io.process_pool import forked, may_fork
        assert may_fork()
        def work(n):
            time.sleep(0.02 if n else 0.1)
            return n, os.getpid()
        results = list(forked(work, range(20), processes=2))
        assert [n for n, _ in results] == list(range(20))
        print(len({pid for _, pid in results}), os.getpid() in {pid for _, pid in results})
        """
    )
    assert found == ["2", "False"]


@linux
def test_what_a_lost_copy_had_taken_is_done_here_and_an_error_is_that_of_the_task():
    found = told(
        """
        import os, time
        from theodolite.io.process_pool import forked
        first = os.getpid()
        def work(n):
            time.sleep(0.01)
            if os.getpid() != first and n > 4:
                os._exit(9)
            return n
        print(list(forked(work, range(12), processes=3)) == list(range(12)))
        def fails(n):
            if n == 3:
                raise ValueError("expected no 3")
            return n
        try:
            list(forked(fails, range(6), processes=2))
        except ValueError as error:
            print(str(error).replace(" ", "-"))
        """
    )
    assert found == ["True", "expected-no-3"]


@linux
def test_no_copy_is_left_where_nobody_asks_for_the_rest_and_none_keeps_the_lock_of_a_folder(tmp_path):
    found = told(
        f"""
        import os, pathlib, time
        from theodolite.io.folder_lock import claim, _claimed
        from theodolite.io.process_pool import forked
        class Holder: pass
        holder = Holder()
        claim(pathlib.Path({str(tmp_path)!r}), holder)
        def work(n):
            time.sleep(0.02)
            return os.getpid(), all(file.closed for file, _ in _claimed.values())
        results = list(forked(work, range(8), processes=2))
        print({{closed for pid, closed in results if pid != os.getpid()}} <= {{True}})
        some = forked(work, range(1000), processes=2)
        next(some)
        some.close()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("alone")
        """
    )
    assert found == ["True", "alone"]


def test_a_process_that_has_loaded_torch_is_not_copied():
    import torch

    from theodolite.io.process_pool import forked, may_fork

    assert torch is not None
    assert not may_fork()
    assert list(forked(lambda n: (n, os.getpid()), range(3), processes=1)) == [(n, os.getpid()) for n in range(3)]
