#pragma once

#include <array>
#include <string_view>

#include "ivy/api/field_table.h"

namespace bouquet::ivy::api {

// Rows that the embed routes of several dialects share: Bouquet's extensions, and fields that mean
// the same everywhere.

inline constexpr std::array<std::string_view, 2> kSides = {"right", "left"};

constexpr text::TruncationSide SideOf(size_t choice) {
  return choice == 0 ? text::TruncationSide::kRight : text::TruncationSide::kLeft;
}

inline constexpr FieldSpec kModelField = {
    .name = "model",
    .kind = FieldKind::kString,
    .description = "A served model or one of its aliases; absent or empty: the default model.",
    .store = [](const FieldValue& value, Request& request) { request.model = value.text; }};

inline constexpr FieldSpec kDimensionsField = {
    .name = "dimensions",
    .kind = FieldKind::kInteger,
    .description = "Length of the vectors, 1 to the model's width. Rows are cut, then normalised.",
    .minimum = 1,
    .store = [](const FieldValue& value, Request& request) { request.dimensions = value.number; }};

inline constexpr FieldSpec kNormalizeField = {
    .name = "normalize",
    .kind = FieldKind::kBoolean,
    .description = "Scale each vector to unit length.",
    .store = [](const FieldValue& value, Request& request) { request.normalize = value.flag; }};

inline constexpr FieldSpec kTruncateField = {
    .name = "truncate",
    .kind = FieldKind::kBoolean,
    .description = "Cut an input that is longer than the model allows (true) or refuse it (false).",
    .store = [](const FieldValue& value, Request& request) { request.truncate = value.flag; }};

inline constexpr FieldSpec kTruncationDirectionField = {
    .name = "truncation_direction",
    .kind = FieldKind::kChoice,
    .description = "Which end of an over-long input is dropped.",
    .choices = kSides,
    .any_case = true,
    .store = [](const FieldValue& value, Request& request) {
      request.truncation_side = SideOf(value.choice);
    }};

inline constexpr FieldSpec kPromptField = {
    .name = "prompt",
    .kind = FieldKind::kString,
    .description = "Text put before each text input; never before token ids.",
    .store = [](const FieldValue& value, Request& request) { request.prompt = value.text; }};

inline constexpr FieldSpec kPromptNameField = {
    .name = "prompt_name",
    .kind = FieldKind::kString,
    .description = "The name of one of the model's own prompts.",
    .store = [](const FieldValue& value, Request& request) { request.prompt_name = value.text; }};

}  // namespace bouquet::ivy::api
