"""How much memory is free, so that work may keep what it would otherwise compute again."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

KIB = 1024


def free_bytes(device: Any = "cpu") -> int:
    """Bytes that a program may still take on a device without anything being swapped out; 0 where nobody can tell.

    >>> free_bytes() > 0
    True
    """
    if str(device).startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return min(_free_on_machine(), _free_in_group())


def _free_on_machine() -> int:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return KIB * int(line.split()[1])
    with suppress(OSError, ValueError, AttributeError):  # macOS counts pages and does not say which are free: a quarter
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    return 0


def _free_in_group() -> int:
    """What a container's limit leaves; as much as anyone could want where there is none."""
    root = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        return max(0, int((root / "memory.max").read_text()) - int((root / "memory.current").read_text()))
    return 1 << 62
