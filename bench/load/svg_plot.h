#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bouquet::bench {

/// A line plot as inline SVG: no script, nothing from outside.
struct SvgPlot {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;  // (x, y), x rising; y > 0 with a log axis
  };
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<std::pair<double, std::string>> x_ticks;  // where and what to write; spans the axis
  bool log_y = false;
  std::vector<Line> lines;
};

/// Points that are not finite, or not positive on a log axis, are left out.
std::string WriteSvg(const SvgPlot& plot);

/// `text` for use between tags and in attributes.
std::string EscapeHtml(std::string_view text);

}  // namespace bouquet::bench
