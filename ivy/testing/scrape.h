#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

namespace bouquet::ivy::testing {

/// The number that a text begins with; fails the test when there is none.
template <class Number>
Number NumberIn(std::string_view text) {
  Number number{};
  EXPECT_EQ(std::from_chars(text.data(), text.data() + text.size(), number).ec, std::errc())
      << text.substr(0, 40);
  return number;
}

/// The value of a series in Prometheus text: `bouquet_x_total{a="b"}`.
inline double SeriesValue(const std::string& text, const std::string& series) {
  const size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) {
    ADD_FAILURE() << "no series " << series;
    return -1;
  }
  return NumberIn<double>(std::string_view(text).substr(at + series.size() + 2));
}

}  // namespace bouquet::ivy::testing
