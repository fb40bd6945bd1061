// Hides the mode that provides values from PyTorch's check whether a call is overridden
// (torch.overrides.has_torch_function and similar). The result is changed inside PyTorch's own
// built-in functions, so that Python sees the same objects as without the mode: a compiler
// recognizes these functions by identity.
#pragma once

#include <cstdint>

namespace memreplay::card {

// A PyMethodDef of CPython, which is the same in all versions.
struct PythonMethod {
  const char* name;
  void* function;
  int flags;
  const char* doc;
};

// What a Python process hands over: addresses of objects, of methods and of functions of the
// interpreter. All must live as long as the process.
struct TorchOverrides {
  // torch._C._has_torch_function, ..._unary and ..._variadic: METH_O, METH_O, METH_FASTCALL.
  PythonMethod* many;
  PythonMethod* one;
  PythonMethod* several;
  // torch._C._len_torch_function_stack, _pop_..., _push_on_...: METH_NOARGS, METH_NOARGS, METH_O.
  const PythonMethod* length;
  const PythonMethod* pop;
  const PythonMethod* push;
  void* mode;  // the mode to hide
  void* yes;   // True
  long (*as_long)(void*);
  void (*release)(void*);  // Py_DecRef
};

// Changes the three methods, once per process. Returns false and changes nothing if one of them is
// not of the kind above.
bool HideMode(const TorchOverrides& overrides);

}  // namespace memreplay::card
