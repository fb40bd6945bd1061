#include "sim/category/stack_roles.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"

namespace memreplay {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// What one frame says about an allocation.
struct FrameRole {
  StackPhase phase = StackPhase::kNone;
  bool is_module_call = false;
  bool is_python = false;
  bool is_torch = false;
  bool is_no_grad = false;
  bool starts_backward_thread = false;  // if it is the outermost one
  StackRole more;
};

// What a stack is if one of its frames is.
constexpr bool StackRole::*kOfAnyFrame[] = {&StackRole::is_state,     &StackRole::is_recomputed,
                                            &StackRole::is_loss,      &StackRole::is_cache,
                                            &StackRole::is_workspace, &StackRole::is_cast};

bool HasOneOf(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return Has(text, part); });
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// C++ frames have only a name.
void AddRoleOfName(std::string_view name, FrameRole* role) {
  // Functions of the same namespace record an op under gradients; only the engine runs backward.
  if (HasOneOf(name, {"torch::autograd::Engine::", "torch::autograd::AccumulateGrad",
                      "torch::autograd::generated::", "torch::autograd::Node::operator()"}) &&
      HasOneOf(name, {"Engine::", "AccumulateGrad"})) {
    role->phase = StackPhase::kBackward;
  }
  role->more.is_workspace = HasOneOf(name, {"getCurrentCUDABlasHandle", "getCUDABlasLtWorkspace",
                                            "getWorkspace", "cudnn::Workspace"});
  role->more.is_communication = HasOneOf(name, {"c10d::", "ProcessGroupNCCL"});
  role->more.is_gradient = Has(name, "torch::autograd::AccumulateGrad::");
  role->more.is_cast = Has(name, "at::autocast::cached_cast");
}

FrameRole RoleOf(std::string file, std::string_view name) {
  FrameRole role;
  std::replace(file.begin(), file.end(), '\\', '/');  // Windows
  role.is_python = file.ends_with(".py") || file.starts_with('<');
  role.is_torch = Has(file, "/torch/") || file.starts_with("torch/");
  const auto in = [&](std::initializer_list<std::string_view> paths) {
    return role.is_torch && HasOneOf(file, paths);
  };
  AddRoleOfName(name, &role);
  if (in({"torch/optim/", "torch/amp/grad_scaler", "torch/cuda/amp/grad_scaler",
          "torch/nn/utils/clip_grad"}) ||
      Has(file, "bitsandbytes/optim/")) {
    role.phase = StackPhase::kOptimizer;
    role.more.is_state =
        IsOneOf(name, {"_init_group", "init_state", "_init_state", "get_state_buffer"});
    if (name == "zero_grad") role.phase = StackPhase::kNone;
  } else if (in({"torch/autograd/graph.py", "torch/autograd/__init__.py"})) {
    if (IsOneOf(name, {"backward", "grad", "_engine_run_backward", "_make_grads"})) {
      role.phase = StackPhase::kBackward;
    }
  } else if (in({"torch/utils/checkpoint.py"})) {
    if (IsOneOf(name, {"backward", "unpack_hook", "recompute_fn", "inner_unpack", "unpack"})) {
      role.phase = StackPhase::kBackward;
      role.more.is_recomputed = true;
      role.starts_backward_thread = true;
    }
  } else if (in({"torch/autograd/function.py"})) {
    role.starts_backward_thread = name == "apply";
  } else if (in({"torch/_tensor.py"}) && name == "backward") {
    role.phase = StackPhase::kBackward;
  } else if (in({"torch/nn/modules/module.py"})) {
    if (IsOneOf(name, {"_call_impl", "_wrapped_call_impl"})) {
      role.phase = StackPhase::kForward;
      role.is_module_call = true;
    } else if (IsOneOf(name, {"_apply", "to", "cuda", "convert", "load_state_dict",
                              "_load_from_state_dict", "half", "bfloat16", "to_empty"})) {
      role.phase = StackPhase::kLoad;
    }
  } else if ((in({"torch/nn/modules/"}) && IsOneOf(name, {"__init__", "reset_parameters"})) ||
             IsOneOf(name, {"from_pretrained", "_load_state_dict_into_meta_model",
                            "set_module_tensor_to_device", "_load_parameter_into_model",
                            "load_state_dict"}) ||
             (Has(file, "safetensors") && IsOneOf(name, {"load_file", "get_tensor"}))) {
    role.phase = StackPhase::kLoad;
  } else if (in({"torch/utils/_contextlib.py"}) && name == "decorate_context") {
    role.is_no_grad = true;
  } else if (in({"torch/distributed/"})) {
    role.more.is_communication =
        !in({"torch/distributed/tensor/_dispatch", "torch/distributed/tensor/_api"});
  } else if (Has(file, "fused_linear_")) {  // Liger's losses make gradients in forward
    role.more.is_gradient = Has(name, "_forward");
  } else {
    role.more.is_loss = in({"torch/nn/modules/loss.py"}) ||
                        HasOneOf(file, {"loss_utils", "cross_entropy"}) ||
                        (in({"torch/nn/functional.py"}) &&
                         HasOneOf(name, {"cross_entropy", "nll_loss", "log_softmax", "mse_loss"}));
  }
  role.more.is_linear =
      in({"torch/nn/modules/linear.py", "torch/nn/modules/conv.py"}) ||
      (in({"torch/nn/functional.py"}) && IsOneOf(name, {"linear", "multi_head_attention_forward"}));
  role.more.is_cache = HasOneOf(file, {"cache_utils.py", "kv_cache", "mem_cache/memory_pool"}) ||
                       Has(name, "allocate_kv_cache");
  return role;
}

uint64_t FunctionOf(const Trace& trace, uint32_t index) {
  const Frame& frame = trace.stacks.frame(index);
  return uint64_t{frame.filename} << 32 | frame.name;
}

}  // namespace

std::vector<StackRole> StackRoles(const Trace& trace) {
  std::vector<FrameRole> frames;
  frames.reserve(trace.stacks.frame_count());
  for (size_t i = 0; i < trace.stacks.frame_count(); ++i) {
    const Frame& frame = trace.stacks.frame(static_cast<uint32_t>(i));
    frames.push_back(RoleOf(std::string(trace.strings[frame.filename]), trace.strings[frame.name]));
  }
  // Functions under torch.no_grad() that call modules evaluate them. Others are parts of a module:
  // tables of positions, FSDP's communication.
  absl::flat_hash_set<uint64_t> evaluates;
  for (size_t stack = 0; stack < trace.stacks.size(); ++stack) {
    bool is_in_module = false;
    uint32_t inner = 0;
    for (const uint32_t index : trace.stacks[static_cast<uint32_t>(stack)]) {
      if (frames[index].is_no_grad && is_in_module) evaluates.insert(FunctionOf(trace, inner));
      is_in_module = is_in_module || frames[index].is_module_call;
      inner = index;
    }
  }
  std::vector<StackRole> roles(trace.stacks.size());
  for (size_t stack = 0; stack < roles.size(); ++stack) {
    StackRole& role = roles[stack];
    const absl::Span<const uint32_t> list = trace.stacks[static_cast<uint32_t>(stack)];
    if (list.empty()) {
      role.phase = StackPhase::kEmpty;
      continue;
    }
    bool is_no_grad = false, is_backward = false, wants_caller = false, is_in_module = false;
    size_t python_frames = 0;
    uint32_t inner = 0;
    for (const uint32_t index : list) {
      const FrameRole& frame = frames[index];
      python_frames += frame.is_python ? 1 : 0;
      // The innermost frame says most, but a forward that recomputes is in backward, and loading
      // calls modules.
      if (role.phase == StackPhase::kNone) role.phase = frame.phase;
      is_backward = is_backward || frame.phase == StackPhase::kBackward;
      is_no_grad = is_no_grad || (frame.is_no_grad && evaluates.contains(FunctionOf(trace, inner)));
      inner = index;
      // What an optimizer calls is under torch.enable_grad(), which has the same decorator.
      if (frame.phase == StackPhase::kOptimizer) is_no_grad = false;
      for (const auto flag : kOfAnyFrame) role.*flag = role.*flag || frame.more.*flag;
      role.is_linear = role.is_linear || (python_frames <= 2 && frame.more.is_linear);
      // A wrapper's forward(), such as FSDP's, calls the module that computes.
      role.is_communication =
          role.is_communication || (frame.more.is_communication && !is_in_module);
      role.is_gradient = role.is_gradient ||
                         (frame.more.is_gradient && python_frames == (frame.is_python ? 1 : 0));
      if (frame.is_module_call) {
        is_in_module = true;
        wants_caller = true;
        role.caller = index + 1;
      } else if (wants_caller && frame.is_python) {
        wants_caller = false;
        role.caller = index + 1;
      }
    }
    if (is_backward || frames[list.back()].starts_backward_thread) {
      role.is_recomputed = role.is_recomputed || role.phase == StackPhase::kForward;
      role.phase = StackPhase::kBackward;
    } else if (role.phase == StackPhase::kForward && is_no_grad) {
      role.phase = StackPhase::kInference;
    }
  }
  return roles;
}

}  // namespace memreplay
