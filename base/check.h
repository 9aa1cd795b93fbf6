#pragma once

#include <sstream>
#include <string>

namespace bouquet::internal {

/// Prints where and what to standard error, then aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression,
                              const std::string& values);

template <class A, class B>
std::string ShowBoth(const A& a, const B& b) {
  std::ostringstream out;
  out << a << " against " << b;
  return out.str();
}

}  // namespace bouquet::internal

// A broken invariant is a bug: say where, print both values, abort. Never for bad input, which is a
// Status.
#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      ::bouquet::internal::CheckFailed(__FILE__, __LINE__, #condition, {}); \
    }                                                                       \
  } while (false)

#define CHECK_OP(a, op, b)                                                       \
  do {                                                                           \
    if (!((a)op(b))) [[unlikely]] {                                              \
      ::bouquet::internal::CheckFailed(__FILE__, __LINE__, #a " " #op " " #b,    \
                                       ::bouquet::internal::ShowBoth((a), (b))); \
    }                                                                            \
  } while (false)

#define CHECK_EQ(a, b) CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) CHECK_OP(a, <, b)
#define CHECK_LE(a, b) CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) CHECK_OP(a, >, b)
#define CHECK_GE(a, b) CHECK_OP(a, >=, b)
