"""What is read out of compute-sanitizer's output."""
import unittest

import sanitize

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at void bouquet::rose::cuda::(anonymous namespace)::NormKernel<(int)4>(Args)+0x90 in norm.cu:87
=========     by thread (0,0,0) in block (1,0,0)
=========     Address 0x7f is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
========= Program hit cudaErrorLaunchFailure (error 719) on CUDA API call to cudaEventSynchronize
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void nvjet_tst_64x8(T1)+0x100
=========     and Read access at void nvjet_tst_64x8(T1)+0x200 [32 hazards]
========= Error: Race reported between Write access at void nvjet_tst_64x8(T1)+0x300
=========     and Read access at void nvjet_tst_64x8(T1)+0x400 [32 hazards]
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""


class SanitizeTest(unittest.TestCase):
    def test_counts_reports_by_kernel(self):
        self.assertEqual(dict(sanitize.read_reports(MEMCHECK)),
                         {("Invalid __global__ read", "NormKernel"): 1,
                          ("Program hit cudaErrorLaunchFailure (error 719)", ""): 1})
        self.assertEqual(dict(sanitize.read_reports(RACECHECK)), {("Error: Race reported", "nvjet_tst_64x8"): 2})

    def test_a_clean_run_has_none(self):
        clean = "========= COMPUTE-SANITIZER\n[  PASSED  ] 3 tests.\n========= ERROR SUMMARY: 0 errors\n"
        self.assertEqual(len(sanitize.read_reports(clean)), 0)


if __name__ == "__main__":
    unittest.main()
