"""What glibc's malloc holds, in its own count: told when it is asked for, and never from a signal handler."""

from __future__ import annotations

import ctypes
import unittest

from harness import HeapTest, compiled


@unittest.skipUnless(hasattr(ctypes.CDLL(None), "mallinfo2"), "the C library has no mallinfo2: glibc has it from 2.33")
class CountTest(HeapTest):
    def test_a_count_is_told_once_for_each_time_it_is_asked_for(self) -> None:
        done = self.run_program(compiled("holes"), "holes")
        (count,) = self.read_only().counts
        told, said = count[:4], tuple(map(int, done.stdout.split()))
        self.assertEqual(told, said)
        self.assertGreater(count[1], 1990 * 20000)
        self.assertLess(count[4], 1e9)

    def test_no_count_from_a_signal_handler(self) -> None:
        self.run_program(compiled("holes"), "handler")
        self.assertEqual(self.read_only().counts, [])

    def test_no_count_of_another_allocator(self) -> None:
        foreign = compiled("foreign", "-shared", "-fPIC")
        self.run_program(compiled("holes"), "holes", LD_PRELOAD=f"{self.environment()['LD_PRELOAD']}:{foreign}")
        self.assertEqual(self.read_only().counts, [])


if __name__ == "__main__":
    unittest.main()
