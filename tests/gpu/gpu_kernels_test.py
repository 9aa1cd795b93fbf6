"""The table of kernels from ncu's output."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]
import gpu_kernels  # noqa: E402

HEADER = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
NORM = "void bouquet::rose::cuda::(anonymous namespace)::NormKernel<4>(bouquet::rose::cuda::NormArgs)"
LAYER = [NORM, "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "void splitKreduce_kernel<32, 16>(int)",
         "bouquet::rose::cuda::<unnamed>::RotaryKernel(bouquet::rose::cuda::RotaryArgs)",
         "void flashinfer::BatchPrefillWithRaggedKVCacheKernel<flashinfer::KernelTraits<1, 2>>(T1::Params)",
         "nvjet_tst_128x8_64x12_2x1_v_bz_TNT", "void cutlass::device_kernel<gate_up>(T1)",
         "void bouquet::(anonymous namespace)::ActivationKernel(bouquet::ActivationArgs)", "nvjet_tst_64x8_splitK_TNT"]


def csv_of(names):
    return "==PROF== Connected\n" + HEADER + "".join(
        f'"{i}","7","{name}","gpu__time_duration.sum","ns","1,500"\n' for i, name in enumerate(names))


class GpuKernelsTest(unittest.TestCase):
    def test_reads_names_and_microseconds_in_order(self):
        kernels = gpu_kernels.read_csv(csv_of(LAYER))
        self.assertEqual([name for name, _ in kernels], LAYER)
        self.assertEqual(kernels[0][1], 1.5)

    def test_output_without_kernels_is_empty(self):
        self.assertEqual(gpu_kernels.read_csv("==ERROR== nothing\n"), [])

    def test_names_lose_namespaces_templates_and_parameters(self):
        self.assertEqual([gpu_kernels.short_name(name) for name in LAYER[:5]],
                         ["NormKernel", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "splitKreduce_kernel", "RotaryKernel",
                          "BatchPrefillWithRaggedKVCacheKernel"])

    def test_products_are_named_by_their_order_in_the_layer(self):
        rows = {row["what"]: row for row in gpu_kernels.table_of(gpu_kernels.read_csv(csv_of(LAYER * 3)), "qwen3", 3)}
        self.assertEqual({what: row["launches"] for what, row in rows.items()},
                         {"norm": 3, "GEMM QKV": 6, "rotary": 3, "attention": 3, "GEMM O": 3, "GEMM gate, up": 3,
                          "activation": 3, "GEMM down": 3})
        self.assertAlmostEqual(rows["GEMM QKV"]["us_per_layer"], 3.0)

    def test_other_numbers_of_products_stay_together(self):
        rows = gpu_kernels.table_of(gpu_kernels.read_csv(csv_of(LAYER * 3)), "qwen3", 4)
        self.assertIn("GEMM", [row["what"] for row in rows])

    def test_rows_of_an_unknown_kernel_carry_its_name(self):
        self.assertEqual(gpu_kernels.group_of("void other::MysteryKernel<3>(int)"), "MysteryKernel")

    def test_finish_is_not_taken_for_a_norm(self):
        self.assertEqual(gpu_kernels.group_of("NormalizeRowsKernel(float*, long)"), "finish")


if __name__ == "__main__":
    unittest.main()
