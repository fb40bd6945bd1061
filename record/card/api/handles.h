// Objects of the mathematics libraries that only carry settings.
#pragma once

#include <cstdlib>

namespace memreplay::card {

// Makes a zeroed object whose address is the handle.
inline int NewObject(void** out) {
  *out = std::calloc(1, 4096);
  return *out == nullptr ? 1 : 0;
}

// Defines entry points that create and destroy an object of a type.
#define OBJECT_OF(Type, create, destroy)       \
  DOES(create, (Type * *out), *out = new Type) \
  DOES(destroy, (MayBeNull<Type> object), delete object.get())

// Defines entry points that create and destroy such an object.
#define OBJECT(create, destroy)                             \
  ENTRY(int, create, void** out) { return NewObject(out); } \
  DOES(destroy, (void* object), std::free(object))

// Likewise, of an object that takes memory of the card. The file includes device.h.
#define COUNTED_OBJECT(what, create, destroy)                  \
  ENTRY(int, create, void** out) {                             \
    const int status = NewObject(out);                         \
    TheDevice().Made(what, __builtin_return_address(0), *out); \
    return status;                                             \
  }                                                            \
  ENTRY(int, destroy, void* object) {                          \
    TheDevice().Destroyed(what, object);                       \
    std::free(object);                                         \
    return 0;                                                  \
  }

}  // namespace memreplay::card
