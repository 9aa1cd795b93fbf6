#include "ivy/handlers/served_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ivy/api/field_table.h"

namespace bouquet::ivy {

void ModelEntry::Replace(ServedModel served) {
  CHECK(served.name == name_ && served.aliases == aliases_);
  served_.Replace(std::move(served));
}

void ModelEntry::SetLoading(std::string progress) {
  const std::lock_guard lock(mutex_);
  loading_ = std::move(progress);
}

void ModelEntry::SetReady(EngineFacts facts) {
  CHECK(!loaded());
  facts_ = std::move(facts);
  loaded_.store(true, std::memory_order_release);
}

const EngineFacts& ModelEntry::facts() const {
  CHECK(loaded());
  return facts_;
}

Readiness ModelEntry::Check() const {
  if (!loaded()) {
    const std::lock_guard lock(mutex_);
    return {false, loading_};
  }
  const std::shared_ptr<const ServedModel> model = served();
  return model->progress ? model->progress() : Readiness{true, {}};
}

Result<ModelTable> ModelTable::From(std::vector<ServedModel> models) {
  if (models.empty()) {
    return InvalidArgument("there is no model to serve", "model");
  }
  ModelTable table;
  std::set<std::string> names;
  for (ServedModel& served : models) {
    std::vector<std::string> all = served.aliases;
    all.push_back(served.name);
    for (const std::string& name : all) {
      if (name.empty() || !names.insert(name).second) {
        return InvalidArgument(
            fmt::format("names and aliases of models must differ and not be empty: \"{}\"", name),
            "model");
      }
    }
    table.entries_.push_back(std::make_unique<ModelEntry>(std::move(served)));
  }
  return table;
}

Result<ModelEntry*> ModelTable::Find(std::string_view name) const {
  if (name.empty()) {
    return entries_.front().get();
  }
  std::vector<std::string_view> names;
  for (const std::unique_ptr<ModelEntry>& entry : entries_) {
    const std::vector<std::string>& aliases = entry->aliases();
    if (entry->name() == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return entry.get();
    }
    names.push_back(entry->name());
  }
  return NotFound(fmt::format("the model is not served: \"{}\"; served: {}",
                              api::Shorten(name, 200), fmt::join(names, ", ")),
                  "model");
}

Result<ModelEntry*> ModelTable::FindLoaded(std::string_view name) const {
  ASSIGN_OR_RETURN(ModelEntry * entry, Find(name));
  if (!entry->loaded()) {
    return Unavailable("not ready: " + entry->Check().reason);
  }
  return entry;
}

}  // namespace bouquet::ivy
