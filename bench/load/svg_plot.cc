#include "bench/load/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "bench/load/summary.h"

namespace bouquet::bench {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 360;
constexpr double kLeft = 70;
constexpr double kRight = 310;  // room for the names of lines
constexpr double kTop = 34;
constexpr double kBottom = 48;
constexpr double kLegendStep = 17;

// Told apart by most people with a colour vision deficiency (Okabe and Ito).
constexpr std::array<const char*, 8> kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000", "#999999"};

struct Range {
  double low = std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::lowest();

  void Take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double Share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

class Drawing {
 public:
  explicit Drawing(const SvgPlot& plot) : plot_(plot) {
    for (const auto& [at, text] : plot.x_ticks) {
      x_.Take(at);
    }
    for (const SvgPlot::Line& line : plot.lines) {
      for (const auto& [x, y] : line.points) {
        if (IsDrawn(x, y)) {
          x_.Take(x);
          y_.Take(Y(y));
        }
      }
    }
    if (y_.low > y_.high) {
      y_ = {0, 1};
    }
    if (!plot.log_y) {
      y_.low = std::min(y_.low, 0.0);
    }
  }

  std::string Draw() {
    Append("<svg viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title>\n", kWidth, kHeight,
           EscapeHtml(plot_.title));
    Text(kLeft, 18, "start", plot_.title);
    DrawAxes();
    for (size_t i = 0; i < plot_.lines.size(); ++i) {
      DrawLine(i);
    }
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void Text(double x, double y, const char* anchor, std::string_view text) {
    Append("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
           EscapeHtml(text));
  }

  bool IsDrawn(double x, double y) const {
    return std::isfinite(x) && std::isfinite(y) && (!plot_.log_y || y > 0);
  }
  double Y(double value) const { return plot_.log_y ? std::log10(value) : value; }
  double PixelX(double x) const { return kLeft + x_.Share(x) * (kWidth - kLeft - kRight); }
  double PixelY(double y) const {
    return kHeight - kBottom - y_.Share(y) * (kHeight - kTop - kBottom);
  }

  void DrawAxes() {
    constexpr int kYTicks = 5;
    const double right = kWidth - kRight;
    for (int i = 0; i <= kYTicks; ++i) {
      const double y = y_.low + (y_.high - y_.low) * i / kYTicks;
      Append("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
             right, PixelY(y), PixelY(y));
      Text(kLeft - 6, PixelY(y) + 4, "end", ShowNumber(plot_.log_y ? std::pow(10, y) : y));
    }
    for (const auto& [at, text] : plot_.x_ticks) {
      Append("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>\n", PixelX(at),
             PixelX(at), kTop, kHeight - kBottom);
      Text(PixelX(at), kHeight - kBottom + 16, "middle", text);
    }
    Text((kLeft + right) / 2, kHeight - 10, "middle", plot_.x_title);
    Text(8, kTop - 4, "start", plot_.y_title);
  }

  void DrawLine(size_t index) {
    const SvgPlot::Line& line = plot_.lines[index];
    const char* colour = kColours[index % kColours.size()];
    Append("<polyline stroke=\"{}\"{} points=\"", colour,
           index < kColours.size() ? "" : " stroke-dasharray=\"5 3\"");
    for (const auto& [x, y] : line.points) {
      if (IsDrawn(x, y)) {
        Append("{:.1f},{:.1f} ", PixelX(x), PixelY(Y(y)));
      }
    }
    out_ += "\"/>\n";
    const double legend_y = kTop + 8 + kLegendStep * static_cast<double>(index);
    Append("<rect x=\"{}\" y=\"{:.1f}\" width=\"12\" height=\"4\" fill=\"{}\"/>\n",
           kWidth - kRight + 14, legend_y - 4, colour);
    Text(kWidth - kRight + 32, legend_y, "start", line.name);
  }

  const SvgPlot& plot_;
  Range x_;
  Range y_;
  std::string out_;
};

}  // namespace

std::string WriteSvg(const SvgPlot& plot) { return Drawing(plot).Draw(); }

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '&': escaped += "&amp;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

}  // namespace bouquet::bench
