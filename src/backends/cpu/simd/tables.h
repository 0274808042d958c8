// Tables of loops, one for each stored type, compiled for every instruction set and picked when the program runs. A file of loops
// (loops.cpp says how it is compiled) ends with these lines, for a table `UpdateLoops` and the function that finds it:
//
//   template <typename T>
//   constexpr UpdateLoops<T> kUpdateLoops{.sgd = sgd<T>, ...};
//   SNUG_DEFINE_TABLES(UpdateLoops)                 in the namespace of one instruction set
//   SNUG_EXPORT_TABLES(UpdateLoops, update_loops)   once, in the namespace around it
//
// Macros, since Highway picks from functions by their names.
#pragma once

#define SNUG_DEFINE_TABLES(Loops)                                       \
  const Loops<float>* f32_##Loops() { return &k##Loops<float>; }        \
  const Loops<Bfloat16>* bf16_##Loops() { return &k##Loops<Bfloat16>; } \
  const Loops<Half>* f16_##Loops() { return &k##Loops<Half>; }

#define SNUG_EXPORT_TABLES(Loops, find)           \
  HWY_EXPORT(f32_##Loops);                        \
  HWY_EXPORT(bf16_##Loops);                       \
  HWY_EXPORT(f16_##Loops);                        \
  template <>                                     \
  const Loops<float>& find() {                    \
    return *HWY_DYNAMIC_DISPATCH(f32_##Loops)();  \
  }                                               \
  template <>                                     \
  const Loops<Bfloat16>& find() {                 \
    return *HWY_DYNAMIC_DISPATCH(bf16_##Loops)(); \
  }                                               \
  template <>                                     \
  const Loops<Half>& find() {                     \
    return *HWY_DYNAMIC_DISPATCH(f16_##Loops)();  \
  }
