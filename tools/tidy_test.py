"""Each rule of tidy.py finds what it bans and leaves alone what it allows."""
import unittest

import tidy


def found(rule, tree):
    return [str(v) for v in rule(tree)]


class LayersTest(unittest.TestCase):
    def test_engine_must_not_see_text(self):
        tree = {"rose/a.h": '#include "text/tokenizer.h"\n', "text/tokenizer.h": ""}
        self.assertEqual(found(tidy.check_layers, tree), ["rose/a.h:1: layers: rose must not include text/tokenizer.h"])

    def test_tulip_sees_the_engines_entry_headers_only(self):
        tree = {"tulip/a.cc": '#include "rose/engine.h"\n#include "rose/tensor/tensor.h"\n', "rose/engine.h": "",
                "rose/tensor/tensor.h": ""}
        self.assertEqual(len(found(tidy.check_layers, tree)), 1)

    def test_one_file_of_ivy_may_see_tulip(self):
        tree = {"ivy/dispatch/in_process_replica.cc": '#include "tulip/core.h"\n',
                "ivy/encode/encoder.cc": '#include "tulip/core.h"\n', "tulip/core.h": ""}
        self.assertEqual(found(tidy.check_layers, tree),
                         ["ivy/encode/encoder.cc:1: layers: ivy must not include tulip/core.h"])

    def test_parsers_and_encoder_do_not_know_each_other(self):
        tree = {"ivy/api/a.h": '#include "ivy/encode/b.h"\n', "ivy/encode/b.h": '#include "ivy/api/a.h"\n'}
        self.assertEqual(len(found(tidy.check_layers, tree)), 2)

    def test_http_library_is_visible_in_one_folder(self):
        beast = "#include <boost/beast/http.hpp>\n"
        tree = {"ivy/http/server.cc": beast, "ivy/api/a.cc": beast}
        self.assertEqual(len(found(tidy.check_layers, tree)), 1)

    def test_only_tests_may_include_testing(self):
        fake = '#include "testing/b.h"\n'
        tree = {"base/a_test.cc": fake, "base/a.cc": fake, "testing/b.h": ""}
        self.assertEqual(found(tidy.check_layers, tree), ["base/a.cc:1: layers: base must not include testing/b.h"])

    def test_own_headers_are_included_by_full_path(self):
        self.assertEqual(len(found(tidy.check_layers, {"base/a.cc": '#include "a.h"\n', "base/a.h": ""})), 1)


class CMakeTest(unittest.TestCase):
    def test_dependencies_follow_the_layers(self):
        tree = {"rose/CMakeLists.txt": "bouquet_library(rose SOURCES a.cc DEPS text base LIBS x)\n", "rose/a.cc": "",
                "text/CMakeLists.txt": "bouquet_library(text SOURCES b.cc DEPS base)\n", "text/b.cc": "",
                "base/CMakeLists.txt": "bouquet_library(base SOURCES c.cc)\n", "base/c.cc": ""}
        self.assertEqual(found(tidy.check_cmake, tree), ["rose/CMakeLists.txt:1: layers: rose must not depend on text"])

    def test_every_source_is_listed(self):
        tree = {"base/CMakeLists.txt": "bouquet_library(base SOURCES deep/a.cc)\n",
                "base/deep/a.cc": "", "base/deep/b.cc": ""}
        self.assertEqual(found(tidy.check_cmake, tree),
                         ["base/deep/b.cc:1: cmake: is listed in no CMakeLists.txt"])


class CudaTest(unittest.TestCase):
    def test_rules_hold_for_cuda_sources_too(self):
        tree = {"rose/CMakeLists.txt": "bouquet_library(rose SOURCES a.cu)\n", "rose/a.h": "#pragma once\n",
                "rose/a.cu": '#include "rose/a.h"\nvoid F() { rand(); }\n',
                "rose/b.cu": '#include "text/c.cuh"\n', "text/c.cuh": "int x;\n"}
        self.assertEqual(found(tidy.check_cmake, tree), ["rose/b.cu:1: cmake: is listed in no CMakeLists.txt"])
        self.assertEqual(found(tidy.check_layers, tree), ["rose/b.cu:1: layers: rose must not include text/c.cuh"])
        self.assertEqual(found(tidy.check_headers, tree), ["text/c.cuh:1: headers: has no `#pragma once`"])
        self.assertEqual(len(found(tidy.check_calls, tree)), 1)

    def test_length_of_a_kernel_is_counted(self):
        body = "".join(f"  x[{i}] = {i};\n" for i in range(80))
        kernel = ("__global__ void __launch_bounds__(256)\n    Kernel(float* x, int n) {\n" + body + "}\n"
                  "void Launch(float* x, cudaStream_t stream) {\n  Kernel<<<1, 256, 0, stream>>>(x, 1);\n}\n")
        self.assertEqual(len(found(tidy.check_lengths, {"rose/a.cu": kernel})), 1)


class HeadersTest(unittest.TestCase):
    def test_source_includes_its_header_first(self):
        guarded = "#pragma once\n"
        good = {"a/b.h": guarded, "a/b.cc": '#include "a/b.h"\n#include <string>\n'}
        bad = {"a/b.h": guarded, "a/b.cc": '#include <string>\n#include "a/b.h"\n'}
        self.assertEqual(found(tidy.check_headers, good), [])
        self.assertEqual(len(found(tidy.check_headers, bad)), 1)

    def test_header_needs_a_guard_and_no_using_namespace(self):
        self.assertEqual(len(found(tidy.check_headers, {"a/b.h": "using namespace std;\n"})), 2)
        self.assertEqual(found(tidy.check_headers, {"a/b.h": "#pragma once\n// using namespace std;\n"}), [])


class NamesTest(unittest.TestCase):
    def test_empty_words_are_banned_in_paths_and_types(self):
        for tree in ({"base/string_utils.h": ""}, {"common/a.h": ""}, {"a.h": "class QueueManager {\n"},
                     {"a.h": "struct IoHelper;\n"}):
            self.assertEqual(len(found(tidy.check_names, tree)), 1, tree)

    def test_words_that_contain_them_are_fine(self):
        self.assertEqual(found(tidy.check_names, {"base/commonly.h": "struct Utility { int manager_count; };\n"}), [])


class CallsTest(unittest.TestCase):
    def test_each_ban_names_its_replacement(self):
        for code, instead in (("std::cout << 1;", "log.h"), ("int x = rand();", "std::mt19937"),
                              ("sprintf(a, b);", "fmt::format"), ("std::regex r;", "hand-written"),
                              ("x = std::stoi(s);", "from_chars"), ("assert(a);", "CHECK"),
                              ("auto t = std::chrono::steady_clock::now();", "Clock")):
            result = found(tidy.check_calls, {"base_x/a.cc": code + "\n"})
            self.assertEqual(len(result), 1, code)
            self.assertIn(instead, result[0])

    def test_comments_strings_and_other_names_are_not_calls(self):
        code = ('// sprintf(\nconst char* s = "rand()";\nint operand(int);\nstatic_assert(true);\n'
                'auto r = R"(\nrand())";\nx.rand();\n')
        self.assertEqual(found(tidy.check_calls, {"a.cc": code}), [])

    def test_digit_separators_do_not_start_a_literal(self):
        self.assertEqual(len(found(tidy.check_calls, {"a.cc": "int a = 1'000; int b = rand(); int c = 2'000;\n"})), 1)

    def test_the_command_line_may_print(self):
        self.assertEqual(found(tidy.check_calls, {"cli/main.cc": "std::cout << 1;\n"}), [])


class LengthsTest(unittest.TestCase):
    def test_long_function_is_found_and_a_long_class_is_not(self):
        body = "  f();\n" * 80
        self.assertEqual(len(found(tidy.check_lengths, {"a.cc": "int F(int a) {\n" + body + "}\n"})), 1)
        long_class = "namespace {\nclass A {\n" + "  int F();\n" * 80 + "};\n}\n"
        self.assertEqual(found(tidy.check_lengths, {"a.cc": long_class}), [])

    def test_function_after_class_and_constructor_with_initialisers(self):
        code = "struct A { A(int x) : x_(x), y_{2} {\n" + "  f();\n" * 80 + "}\nint x_, y_; };\n"
        self.assertEqual(len(found(tidy.check_lengths, {"a.cc": code})), 1)

    def test_wide_line_and_long_file(self):
        self.assertEqual(len(found(tidy.check_lengths, {"a.cc": "int a = 1;  // " + "x " * 60 + "\n"})), 1)
        self.assertEqual(len(found(tidy.check_lengths, {"a.cc": "int a;\n" * 601})), 1)
        self.assertEqual(found(tidy.check_lengths, {"a.cc": "// Generated by x\n" + "int a;\n" * 601}), [])


class LeftoversTest(unittest.TestCase):
    def test_leftovers_and_machine_paths(self):
        for text in ("// TODO later\n", "# FIXME\n", "see /home/me/x\n", "see /root/x\n"):
            self.assertEqual(len(found(tidy.check_leftovers, {"a.md": text})), 1, text)
        self.assertEqual(found(tidy.check_leftovers, {"a.md": "todo lists and ${x}/home/y\n"}), [])

    def test_a_public_host_is_named_in_one_file_at_most(self):
        tree = {"a.md": "https://index.test.net/x\nhttps://index.test.net/y\n", "b.md": "http://localhost:8080/\n"}
        self.assertEqual(found(tidy.check_leftovers, tree), [])
        tree["b.md"] = "https://index.test.net/x\n"
        self.assertEqual(len(found(tidy.check_leftovers, tree)), 1)


if __name__ == "__main__":
    unittest.main()
