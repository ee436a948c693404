// Lists in which each value stands once.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace starling {

/// Appends a value to a short list unless the list has it.
template <class T>
void push_once(std::vector<T>& list, T value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}

}  // namespace starling
