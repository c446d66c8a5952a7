"""A block that is freed and asked for again costs the system nothing."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import ctypes, resource
from rnnapps.memory import keep_freed_memory

libc, size = ctypes.CDLL(None), 2**26
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def faults_of_a_block():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(size)
    ctypes.memset(block, 1, size)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults_of_a_block()
given_back = faults_of_a_block()
keep_freed_memory()
faults_of_a_block()
print(given_back, faults_of_a_block())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_taken_again_without_a_page_fault():
    done = subprocess.run([sys.executable, "-c", FAULTS], stdout=subprocess.PIPE, check=True)
    given_back, kept = map(int, done.stdout.split())
    assert given_back > 20 and kept < 3
