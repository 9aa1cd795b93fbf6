#include "text/post_processor.h"

namespace bouquet::text {
namespace {

using Part = SequenceTemplate::Part;
using Kind = Part::Kind;

Part Special(int32_t id, uint8_t type_id = 0) {
  return {.kind = Kind::kSpecial, .ids = {id}, .type_id = type_id};
}
Part First() { return {.kind = Kind::kFirst, .ids = {}, .type_id = 0}; }
Part Second(uint8_t type_id) { return {.kind = Kind::kSecond, .ids = {}, .type_id = type_id}; }

}  // namespace

int32_t SequenceTemplate::num_special_tokens() const {
  size_t count = 0;
  for (const Part& part : parts) {
    count += part.ids.size();
  }
  return static_cast<int32_t>(count);
}

int32_t SequenceTemplate::num_leading_tokens() const {
  size_t count = 0;
  for (const Part& part : parts) {
    if (part.kind == Kind::kFirst) {
      break;
    }
    count += part.ids.size();
  }
  return static_cast<int32_t>(count);
}

PostProcessor PlainPostProcessor() {
  return {.single = {.parts = {First()}},
          .pair = SequenceTemplate{.parts = {First(), Second(1)}, .bare_second_type = 1}};
}

PostProcessor BertPostProcessor(int32_t cls, int32_t sep) {
  return {.single = {.parts = {Special(cls), First(), Special(sep)}},
          .pair = SequenceTemplate{
              .parts = {Special(cls), First(), Special(sep), Second(1), Special(sep, 1)},
              .bare_second_type = 1}};
}

PostProcessor RobertaPostProcessor(int32_t cls, int32_t sep) {
  return {.single = {.parts = {Special(cls), First(), Special(sep)}},
          .pair = SequenceTemplate{.parts = {Special(cls), First(), Special(sep), Special(sep),
                                             Second(0), Special(sep)}}};
}

}  // namespace bouquet::text
